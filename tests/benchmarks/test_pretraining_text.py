"""Documents of novels and articles, and which of them nobody learns from."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

Load = Callable[[str], ModuleType]
ARTICLES = """
 = A tree =

 It is 3 @.@ 5 m .
 = = Age = =
 An <unk> one .
 = B =
 Last .
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder laid out as the script wants it."""
    novels = "\n\n==== Trollope_Warden_1855.txt ====\n\nHiram.\n\n==== Other_1850.txt ====\nOne.\n"
    novels += "Two.\n" * 60
    (tmp_path / "english_novels_19c.txt.gz").write_bytes(gzip.compress(novels.encode()))
    for part in ("valid", "test"):
        (tmp_path / f"wikitext-2.{part}.txt").write_text(ARTICLES)
    (tmp_path / "QNLI-subset").mkdir()
    pairs = {"7": {"text_a": 'Who "is"?', "text_b": "He.", "label": "entailment"}}
    for split in ("train", "dev"):
        file = tmp_path / "QNLI-subset" / f"{split}.json.gz"
        file.write_bytes(gzip.compress(json.dumps(pairs).encode()))
    return tmp_path


def test_articles_lose_what_the_corpus_added(program: Load, source: Path):
    found = program("pretraining_text").articles(source / "wikitext-2.test.txt")
    assert found == ["It is 3.5 m .\n= = Age = =\nAn one .", "Last ."]


def test_the_novel_left_out_is_only_in_what_is_held_out(program: Load, source: Path):
    program("pretraining_text").write(source, source, source / "data")
    corpus = (source / "data" / "corpus.txt").read_text().split("\n\n")
    assert [len(document.splitlines()) for document in corpus] == [60, 1, 3, 1]
    held_out = (source / "data" / "held-out.txt").read_text()
    assert held_out.split("\n\n")[1] == "Hiram."
    assert "Hiram" not in "".join(corpus)


def test_pairs_are_rows(program: Load, source: Path):
    program("pretraining_text").write(source, source, source / "data")
    rows = (source / "data" / "qnli-dev.tsv").read_text().splitlines()
    assert rows == ["text_a\ttext_b\tlabel", '"Who ""is""?"\tHe.\tentailment']

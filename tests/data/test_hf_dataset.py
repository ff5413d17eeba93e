"""Datasets of Hugging Face as files: with a stand-in for the library, or with it."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kbert.data.hf_dataset import hf_file
from kbert.tasks.registry import finetuned_task
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.run import look_first

SENTIMENT = SimpleNamespace(names=["negative", "positive"])
TAGS = SimpleNamespace(names=["O", "B-PER"])


class Rows(list):
    """A split of a dataset: its rows, and the kinds of its columns."""

    def __init__(self, rows: list[dict[str, Any]], **features: Any) -> None:
        super().__init__(rows)
        self.features = {column: features.get(column) for column in (rows or [{}])[0]}


@pytest.fixture
def library(monkeypatch):
    """A stand-in for `datasets`; `found` is what its `load_dataset` returns or raises."""
    fake = SimpleNamespace(found=None, asked=[])

    def load_dataset(*names: Any, split: str) -> Any:
        fake.asked.append((*names, split))
        if isinstance(fake.found, Exception):
            raise fake.found
        return fake.found

    fake.load_dataset = load_dataset
    monkeypatch.setitem(sys.modules, "datasets", fake)
    return fake


def lines(file: str) -> list[Any]:
    return [json.loads(line) for line in Path(file).read_text("utf-8").split("\n")[:-1]]


def test_class_labels_become_their_names(library):
    rows = [{"text": "a joy", "label": 1}, {"text": "über\u2028x", "label": -1}]
    library.found = Rows(rows, label=SENTIMENT)
    with hf_file("org/films:en@test[:2]", "train") as file:
        assert library.asked == [("org/films", "en", "test[:2]")]
        assert lines(file) == [
            {"text": "a joy", "label": "positive"},
            {"text": "über\u2028x", "label": None},
        ]
        assert Path(file).name == "hf-org-films-en-test-2.jsonl"
    assert not Path(file).exists()
    with hf_file("films", "train"):
        assert library.asked[-1] == ("films", None, "train")


@pytest.mark.parametrize("feature", [[TAGS], SimpleNamespace(feature=TAGS)])
def test_tagged_words_become_columns(library, feature):
    rows = [{"tokens": ["Ann", "in New York"], "ner_tags": [1, 0], "id": "0"}]
    library.found = Rows(rows, ner_tags=feature)
    with hf_file("names", "train") as file:
        assert lines(file)[0]["tokens"] == ["Ann", "in New York"]
    with hf_file("names", "train", tagged=True) as file:
        assert Path(file).read_text("utf-8") == "Ann\tB-PER\nin_New_York\tO\n\n"


def test_tasks_read_them(library):
    library.found = Rows([{"text": "a joy", "label": 1}], label=SENTIMENT)
    columns = {"text_a": None, "text_b": None, "label": None, "glue": None}
    config = SimpleNamespace(train="hf:films", **columns)
    examples = finetuned_task("classification").read(config, "train")
    assert (examples.text_a, examples.labels) == (["a joy"], ["positive"])
    library.found = Rows([{"tokens": ["Ann"], "ner_tags": [1]}], ner_tags=[TAGS])
    config = SimpleNamespace(validation="hf:names", tag_scheme="bio", label=None)
    sentences = finetuned_task("ner").read(config, "validation")
    assert sentences.labels == ["PER"] and library.asked[-1][-1] == "validation"
    answers = {"text": ["Ann"], "answer_start": [0]}
    library.found = Rows([{"id": "q", "question": "Who?", "context": "Ann.", "answers": answers}])
    config = SimpleNamespace(train="hf:squad", all_occurrences=False)
    assert finetuned_task("question-answering").read(config, "train").questions == ["Who?"]


def test_a_run_may_name_one(tmp_path):
    run = str(tmp_path / "run")
    look_first(RunConfig(train="hf:films", encoder="all-MiniLM-L6-v2", output=run))


def test_errors(library, monkeypatch):
    library.found = Rows([])
    with pytest.raises(ValueError, match="hf:films must have rows. Received: none in train"):
        with hf_file("films", "train"):
            pass
    library.found = RuntimeError("Unknown split\n'trane'")
    message = "hf:films@trane, split trane: RuntimeError: Unknown split 'trane'"
    with pytest.raises(ValueError, match=message):
        with hf_file("films@trane", "train"):
            pass
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ImportError, match=r'hf:NAME needs datasets: pip install "\.\[hf\]"'):
        with hf_file("films", "train"):
            pass


def test_a_folder_with_the_library(tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets", reason='the extra "hf"')
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / "films").mkdir()
    for split in ("train", "test"):
        (tmp_path / "films" / f"{split}.csv").write_text(f"text,label\n{split} film,good\n")
    with hf_file(f"{tmp_path / 'films'}@test", "train") as file:
        assert lines(file) == [{"text": "test film", "label": "good"}]
    named = datasets.Dataset.from_dict(
        {"tokens": [["Ann", "came"]], "ner_tags": [[1, 0]]},
        features=datasets.Features(
            tokens=datasets.Sequence(datasets.Value("string")),
            ner_tags=datasets.Sequence(datasets.ClassLabel(names=["O", "B-PER"])),
        ),
    )
    monkeypatch.setattr(datasets, "load_dataset", lambda *names, split: named)
    with hf_file("names", "train", tagged=True) as file:
        assert Path(file).read_text("utf-8") == "Ann\tB-PER\ncame\tO\n\n"

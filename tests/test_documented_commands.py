"""The commands of the documentation, run as they stand, page by page and in their order.

On small files of the names that the pages use, and for an epoch or a few steps where a page trains
for longer. Published encoders other than all-MiniLM-L6-v2 are stood in for by a small one.
"""

import gzip
import itertools
import json
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

import keras
import pandas as pd
import pytest
from typer.testing import CliRunner

from kbert.checkpoints import pretrained
from kbert.cli.main import app
from kbert.data.samples import sample_path
from kbert.models.bert import Bert
from kbert.tasks.pretraining.model import MaskedLanguageModel
from kbert.text.wordpiece.wordpiece import WordPiece
from tests.test_documentation import ROOT, commands_of

PAGES = [path for path in sorted((ROOT / "docs").glob("*.md")) if commands_of(path)]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PAGES, reason="the tests run without the project's pages"),
]

# What trains for hours, as short as it can be; the rest of a command stands.
SHORT = {
    "--steps": "2",
    "--epochs": "1",
    "--cooldown-epochs": "0",
    "--average": "1",
    "--warmup-steps": "1",
    "--save-every": "2",
    "--copies": "1",
    "--shards": "2",
    "--vocabulary-size": "300",
    "--part": "1/1",
}
# Beginning of a command -> why it is not run here.
NOT_RUN = {
    "captioning.md": "MobileNetV2's weights are downloaded; see tests/cli/commands of captions",
    "serve": "it serves until it is stopped; tests/test_readme.py runs it",
    "push": "it writes to the Hugging Face hub; tests/cli/commands/test_push.py has one of its own",
    "launch": "several processes; tests/launch",
    "convert opus-mt-en-de": "Marian's weights; tests/cli/actions/test_conversion_translator_*.py",
    "convert runs/en-de en-de-ct2": "a translator of Marian's form; the same tests",
    "train embedding": "STS-B and pairs; tests/training/recipes",
    "convert runs/vectors": "the run before it",
    "pretrain runs/": "the corpora that benchmarks/ make; the page says how",
    "plot runs/hour": "the run before it",
    "train span-tagging --train runs/": "the data that benchmarks/ make; the page says how",
    "check exports/sentiment/3 --server 2.19": "an export of a third version; tests/cli/commands",
}
CLASSIFIER = (
    "train classification --train train.tsv --validation dev.tsv --encoder all-MiniLM-L6-v2"
)
TRANSLATOR = (
    "train translation --train-source train.en --train-target train.de --validation-source val.en "
    "--validation-target val.de --vocabulary-size 300 --size tiny --epochs 1"
)
ADAPTED = [
    f"train classification --train {name}.tsv --encoder all-MiniLM-L6-v2 --adapter pfeiffer "
    f"--output runs/{name}"
    for name in ("mnli", "qnli", "sick")
]
# What a page takes for granted, mostly as another page makes it.
BEFORE = {
    "batch-inference.md": [
        f"{CLASSIFIER} --output runs/topics",
        "export runs/topics exports",
        "train question-answering --train train.json --encoder all-MiniLM-L6-v2 --epochs 1 "
        "--output runs/squad",
    ],
    "bert-fusion.md": [f"{TRANSLATOR} --output runs/vanilla"],
    "checkpoints.md": [f"{CLASSIFIER} --output runs/topics"],
    "export.md": [
        f"{CLASSIFIER} --output runs/topics",
        "export runs/topics exports --name sentiment",
        "train ner --train train.conll --encoder all-MiniLM-L6-v2 --adapter pfeiffer "
        "--epochs 1 --output runs/names",
        "export minilm-squad exports --with runs/names --name mail",
    ],
    "pretraining.md": [
        "prepare 'corpus/part-*.txt' --vocabulary vocab.txt --copies 10 --shards 64 "
        "--output examples"
    ],
    "transfer.md": ADAPTED,
}


def written(path: str, lines: Iterable[str]) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    content = ("\n".join(lines) + "\n").encode()
    Path(path).write_bytes(gzip.compress(content) if path.endswith(".gz") else content)


@pytest.fixture
def folder(minilm_directory, tmp_path, monkeypatch):
    """The working directory, with small files of the names that pages use."""
    monkeypatch.chdir(tmp_path)
    topics = [line.split("\t") for line in sample_path("support/train.tsv").read_text().split("\n")]
    texts = [row for row in topics[1:] if len(row) == 2]
    table = [f"{text}\t{label}\t{label}|mail" for text, label in texts[:48]]
    for name in ("train.tsv", "dev.tsv", "test.tsv"):
        written(name, ["text\tlabel\tlabels", *table])
    pairs = [f"{a}\t{b}\t{i % 2}" for i, ((a, _), (b, _)) in enumerate(zip(texts, texts[1:]))][:24]
    for name in ("rte", "rte-dev", "snli-mnli", "mnli", "qnli", "sick"):
        written(f"{name}.tsv", ["sentence1\tsentence2\tlabel", *pairs])
    names = itertools.cycle(("entailment", "not_entailment"))
    glue = [f"{i}\t{row[:-1]}{name}" for i, (row, name) in enumerate(zip(pairs, names))]
    for part in ("train", "dev", "test"):
        written(f"glue/RTE/{part}.tsv", ["index\tsentence1\tsentence2\tlabel", *glue])
    mails = [{"id": i, "text": text} for i, (text, _) in enumerate(texts[:20])]
    written("mails.jsonl", map(json.dumps, mails))
    pd.DataFrame(mails).to_parquet("texts.parquet")
    sentences = sample_path("entities/sentences.conll").read_text()
    for name in ("train", "dev", "test"):
        written(f"{name}.conll", sentences.split("\n"))
    questions = sample_path("questions/questions.json").read_text()
    for name in ("train.json", "dev.json", "train-v1.1.json", "dev-v1.1.json"):
        Path(name).write_text(questions)
    article = "Ann wrote the book in 1901, in York."
    written("article.txt", [article])
    written("questions.tsv.gz", ["question\tcontext", f"Who wrote it?\t{article}"] * 2)
    translations = sample_path("translation/train.tsv").read_text().strip().split("\n")[1:]
    for part, language in itertools.product(("train", "val", "test"), (0, 1)):
        lines = [pair.split("\t")[language] for pair in translations[:120]]
        for ending in ("", ".gz"):
            written(f"{part}.{('en', 'de')[language]}{ending}", lines)
    corpus = [line for text, _ in texts[:160] for line in (text, "" if len(text) % 5 else text)]
    for name in ("corpus/part-1.txt", "papers/part-1.txt.gz", "held-out.txt"):
        written(name, corpus)
    Path("vocab.txt").write_text((minilm_directory / "vocab.txt").read_text())
    scored = [f"{row[:-1]}{i % 6}" for i, row in enumerate(pairs)]
    written("STS-B/dev.tsv", ["sentence1\tsentence2\tscore", *scored])
    for name in ("rte", "mnli"):
        written(f"{name}.yaml", [f"train: {name}.tsv"])
    Path("answers").mkdir()
    written("ner.yaml", ["task: ner", "train: train.conll", "validation: dev.conll"])
    return tmp_path


@pytest.fixture
def stand_in(minilm_directory, tmp_path_factory, monkeypatch):
    """A small BERT wherever the hub would be asked."""
    keras.utils.set_random_seed(1)
    tokenizer = WordPiece.from_pretrained(minilm_directory, special_tokens_in_text=True)
    model = MaskedLanguageModel(Bert(len(tokenizer.vocabulary), 32, 2, 2, 64, 512), tokenizer)
    found = tmp_path_factory.mktemp("hub") / "bert"
    model.save_pretrained(found, format="huggingface")
    monkeypatch.setattr(pretrained, "_fetch", lambda *arguments: found)


def blocks_of_yaml(page: Path) -> list[str]:
    return re.findall(r"^```yaml\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)


def shortened(words: list[str]) -> list[str]:
    """A command with the values of SHORT where it has the options."""
    values = [*zip([None, *words], words)]
    return [SHORT.get(option or "", word) for option, word in values]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page(page, folder, stand_in):
    for block in blocks_of_yaml(page):
        if "stages:" in block and "output:" in block:
            Path("chain.yaml").write_text(block)
        elif name := re.match(r"# (\w+\.yaml)\n", block):
            Path(name[1]).write_text(block)
    commands = [shlex.split(line) for line in BEFORE.get(page.name, [])] + commands_of(page)
    if page.name == "translation.md":
        Path("test.tsv").write_text(sample_path("translation/test.tsv").read_text())
    done: set[str] = set()
    for words in commands:
        line = shlex.join(words)
        if page.name in NOT_RUN or any(line.startswith(begin) for begin in NOT_RUN):
            continue
        if words[0] == "prepare" and line in done:  # on the page behind what reads it
            continue
        line = line.replace("$PAIRS", str(sample_path("translation/train.tsv").parent))
        words = shortened(shlex.split(line))
        if words[0] in ("train", "pretrain"):
            words.append("--overwrite")  # pages name one run several times
        has_pieces = {"--vocabulary-size", "--warm-start"} & set(words)
        if words[:2] == ["train", "translation"] and not has_pieces:
            words += ["--vocabulary-size", SHORT["--vocabulary-size"]]
        stdin = Path("val.en").read_text() if words == ["predict", "runs/en-de"] else None
        result = CliRunner().invoke(app, words, input=stdin)
        assert result.exit_code == 0, f"kbert {line}\n{result.stderr}\n{result.exception!r}"
        done.add(line)
    if not done:
        pytest.skip("all commands of the page are among NOT_RUN, with their reasons")
    assert not list(folder.rglob("*.incomplete"))

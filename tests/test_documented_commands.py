"""The commands of the documentation, run as they stand, page by page and in their order.

On small files of the names that the pages use, with as many pieces as these can give, and for two
steps where a page trains for thousands; epochs are as many as it says. What is shortened so is run
once more word for word, on files as large as it asks for, and stopped behind its first step. What
is downloaded is stood in for: published encoders other than all-MiniLM-L6-v2 by a small one, the
weights of an image network by random ones; and so is the hub that is written to. A TPU is stood in
for by the device that is there. The programs of benchmarks/ are not run here: they need hours, or
corpora, and write their results into benchmarks/results.
"""

import contextlib
import itertools
import json
import re
import runpy
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import keras
import pytest
from typer.testing import CliRunner

from kbert.checkpoints import pretrained
from kbert.cli.main import app
from kbert.data.samples import sample_path
from kbert.local_server.server import LocalServer
from kbert.models.bert import Bert
from kbert.tasks.pretraining.model import MaskedLanguageModel
from kbert.text.wordpiece.wordpiece import WordPiece
from kbert.training.callbacks import step_bar
from tests.documented_files import write_documented_files, write_large_files
from tests.test_documentation import ROOT, commands_of, programs_of

PAGES = [path for path in sorted((ROOT / "docs").glob("*.md")) if commands_of(path)]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PAGES, reason="the tests run without the project's pages"),
]

# What trains for hours, as short as it can be, or needs more data; the rest of a command stands.
SHORT = {
    "--steps": "2",
    "--save-every": "2",
    "--vocabulary-size": "300",
    "--part": "1/1",  # eight parts need 57,345 rows
}
# Beginning of a command -> options that it gets here for small data, where it has none of its own.
ADDED = {
    "train translation": {"--vocabulary-size": "300"},
    "train captioning": {"--vocabulary-size": "100", "--batch-size": "2"},
    "launch": {"--size": "tiny", "--steps": "2"},
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
    "domain-adaptation.md": [
        "train question-answering --train train.json --encoder all-MiniLM-L6-v2 --epochs 1 "
        "--output runs/biomedical/reader",
    ],
    "bert-fusion.md": [f"{TRANSLATOR} --output runs/vanilla"],
    "checkpoints.md": [
        f"{CLASSIFIER} --output runs/topics",
        f"{TRANSLATOR} --output runs/en-de",
    ],
    "export.md": [
        f"{CLASSIFIER} --output runs/topics",
        *["export runs/topics exports --name sentiment"] * 3,
        "train ner --train train.conll --encoder all-MiniLM-L6-v2 --adapter pfeiffer "
        "--epochs 1 --output runs/names",
        "export minilm-squad exports --with runs/names --name mail",
    ],
    "pretraining.md": [
        "prepare 'corpus/part-*.txt' --vocabulary vocab.txt --copies 10 --shards 64 "
        "--output examples"
    ],
    "serving.md": ["export minilm-squad exports --name sentiment"],
    "transfer.md": ADAPTED,
}


@pytest.fixture
def folder(minilm_directory, tmp_path, monkeypatch):
    """The working directory, with small files of the names that pages use."""
    monkeypatch.chdir(tmp_path)
    write_documented_files(minilm_directory / "vocab.txt")
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


@pytest.fixture
def random_network(monkeypatch):
    """An image network without the weights that it would download."""
    made = keras.applications.MobileNetV2

    def without_weights(**options):
        assert options["weights"] == "imagenet"
        return made(**{**options, "weights": None})

    monkeypatch.setattr(keras.applications, "MobileNetV2", without_weights)


def blocks_of_yaml(page: Path) -> list[str]:
    return re.findall(r"^```yaml\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)


def words_of(line: str) -> list[str]:
    """The words of a command, word for word but for ports and for a run's name used before."""
    words = shlex.split(line.replace("$PAIRS", str(sample_path("translation/train.tsv").parent)))
    if words[0] == "serve":
        words += ["--rest-port", "0", "--grpc-port", "0"]  # others may serve on this machine
    if words[0] in ("train", "pretrain"):
        words.append("--overwrite")  # pages name one run several times
    return words


def made_short(line: str) -> list[str]:
    """The words of a command with the values of SHORT and the options of ADDED."""
    words = words_of(line.replace("6000,1000,1000", "6,2,2"))  # images
    if "$PAIRS" in line:  # learned in two minutes
        return words
    words = [SHORT.get(option, word) for option, word in zip(["", *words], words)]
    for begin, options in ADDED.items():
        if line.startswith(begin) and "--warm-start" not in words:  # which has its own pieces
            missing = [option for option in options.items() if option[0] not in words]
            words += itertools.chain(*missing)
    return words


def stop_launched(output: Path) -> None:
    """Waits until a run that `kbert launch` began is about to train, and stops this process."""
    log = output.with_name(f"{output.name}.incomplete") / "log.txt"
    while not log.exists() or "parameters: " not in log.read_text():
        time.sleep(0.5)
    signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page(page, folder, stand_in, random_network, hub, served):
    for block in blocks_of_yaml(page):
        if "stages:" in block and "output:" in block:
            Path("chain.yaml").write_text(block)
        elif name := re.match(r"# (\w+\.yaml)\n", block):
            Path(name[1]).write_text(block)
    if page.name == "translation.md":
        Path("test.tsv").write_text(sample_path("translation/test.tsv").read_text())
    done: set[str] = set()
    for line in [*BEFORE.get(page.name, []), *map(shlex.join, commands_of(page))]:
        if line.startswith("prepare") and line in done:  # on the page behind what reads it
            continue
        stdin = Path("val.en").read_text() if line == "predict runs/en-de" else None
        result = CliRunner().invoke(app, made_short(line), input=stdin)
        assert result.exit_code == 0, f"kbert {line}\n{result.stderr}\n{result.exception!r}"
        assert all(Path(made).exists() for made in re.findall(r" --output (\S+)", line))
        done.add(line)
    assert not list(folder.rglob("*.incomplete"))


LONG = [
    pytest.param(page, line, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, line in enumerate(map(shlex.join, commands_of(page)))
    if made_short(line) != words_of(line)
]


@pytest.mark.parametrize("page, line", LONG)
def test_what_is_shortened_begins_as_it_is_written(
    page, line, folder, stand_in, random_network, monkeypatch
):
    for before in BEFORE.get(page.name, []):
        assert CliRunner().invoke(app, made_short(before)).exit_code == 0, before
    write_large_files()
    verb = line.split()[0]
    if verb == "launch":
        threading.Thread(target=stop_launched, args=(Path("runs/base"),), daemon=True).start()
    monkeypatch.setattr(step_bar, "tell_stage", lambda _: signal.raise_signal(signal.SIGTERM))
    result = CliRunner().invoke(app, words_of(line))
    stopped = verb in ("train", "pretrain", "launch")
    assert result.exit_code == (75 if stopped else 0), f"kbert {line}\n{result.stderr}"
    if verb in ("train", "pretrain"):
        assert list(folder.glob("runs/**/*.incomplete/**/step-000000001"))


def run_program(monkeypatch, name: str, *arguments: str) -> None:
    """Runs a program of tpu/ or export/ to its end, which must be a good one."""
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    monkeypatch.syspath_prepend(str((ROOT / name).parent))
    try:
        runpy.run_path(str(ROOT / name), run_name="__main__")
    except SystemExit as ended:
        assert not ended.code, f"{name} {' '.join(arguments)}"


def test_the_programs_for_a_tpu(folder, monkeypatch):
    tiny = (ROOT / "tpu/configs/tiny.yaml").read_text().replace("steps: 1000", "steps: 10")
    short = tiny.replace("vocabulary_size: 500", "vocabulary: vocab.txt")
    short = short.replace("runs/tpu-tiny", "runs/tpu-pretraining")
    for name in ("pretrain.yaml", "tpu/configs/pretrain_base.yaml"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(short)
    for name, *arguments in programs_of(ROOT / "docs/tpu.md"):
        if name == "tpu/pretrain.py" and "--dry-run" not in arguments:
            arguments.append("--dry-run")
        run_program(monkeypatch, name, *arguments)
    assert len([*Path("models").glob("*/1/saved_model.pb")]) == 1


def test_the_programs_of_an_export(folder, monkeypatch, capsys):
    page = ROOT / "export/README.md"
    Path("texts.txt").write_text("a film\n\nthat grows\n")
    result = CliRunner().invoke(app, shlex.split(f"{CLASSIFIER} --epochs 1 --output RUN"))
    assert result.exit_code == 0, result.stderr
    with contextlib.ExitStack() as stack:
        stdin = stack.enter_context(open("texts.txt", encoding="utf-8"))
        monkeypatch.setattr(sys, "stdin", stdin)
        for name, *arguments in programs_of(page):
            run_program(monkeypatch, name, *arguments)
            if name == "export/export_model.py":
                try:
                    stack.enter_context(LocalServer("models"))  # at the ports of the page
                except OSError as error:
                    # The page's commands name these ports; another server may hold them.
                    pytest.skip(f"the ports 8500 and 8501 must be free: {error}")
        assert capsys.readouterr().out.count('"label":') == 5  # two arguments and three lines
        calls = re.findall(r"^curl -s (.*(?:\n  .*)*)", page.read_text(encoding="utf-8"), re.M)
        for call in calls:
            words = shlex.split(call.replace("\\\n", " "))
            done = subprocess.run(["curl", "-sf", *words], capture_output=True, check=True)
            assert json.loads(done.stdout)
    assert len(calls) == 5

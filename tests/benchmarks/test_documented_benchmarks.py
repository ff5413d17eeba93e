"""The benchmarks of the pages, begun on the real data: a minute of each, not the hours they take.

Each works in a copy of the repository, whose results are not those that are kept, beside runs of
untrained models where it goes on from the run of another.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kbert.checkpoints.pretrained import SHIPPED
from kbert.data.samples import sample_path
from kbert.models.bert import Bert
from kbert.models.encoder_decoders.bert_fused_transformer import BertFusedTransformer
from kbert.models.encoder_decoders.transformer import Transformer
from kbert.tasks.classification.model import Classifier
from kbert.tasks.translation.model import Translator
from tests.benchmark_output import broken_contenders, lacks_a_package
from tests.small_pipelines import TOKENIZER
from tests.small_translator import small_subwords
from tests.test_documentation import ROOT, WITH_PROGRAMS, programs_of

SECONDS = float(os.environ.get("KBERT_BENCHMARK_SECONDS", "60"))
# What pages write in the place of a folder or file of the data -> where it is.
DATA = {
    **dict.fromkeys(("DATA", "DATA_DIRECTORY"), "."),
    **dict.fromkeys(("GLUE", "GLUE_DIRECTORY"), "glue"),
    **dict.fromkeys(("SQUAD", "SQUAD_DIRECTORY"), "squad"),
    "BIOMED_DIRECTORY": "biomed",
    "CAPTIONS": "captions",
    "EFFICIENTNET": "vision/efficientnet-lite0.safetensors",
    "MULTI30K": "mt/multi30k",
    "NER_DIRECTORY": "ner",
    "TALPCO": "mt/talpco_en_my",
    "TEXT_DIRECTORY": "text",
    "WNUT17": "ner/wnut17",
    "covid-qa.json": "biomed/covid-qa.json",
    "vocab.txt": "vocab/bert-base-uncased-vocab.txt",
}
RUNS = ("RUNS", "RUNS_DIRECTORY", "runs")
# What pages write in the place of what is trained, or of an interpreter -> what there is here.
MADE = {
    "READER": str(SHIPPED["minilm-squad"]),
    "MODEL": "runs/mt/vanilla-1/model",
    "FUSED": "runs/mt/fused-1/model",
    "RUN_DIRECTORY": "runs/new",
    "PYTHON": os.environ.get("KBERT_PEER_PYTHON", sys.executable),
}
GENERAL = "runs/biomedical/data/general.json"
COMMANDS = sorted(
    {
        shlex.join(words)
        for page in WITH_PROGRAMS
        for words in programs_of(page)
        if words[0].startswith("benchmarks/")
    }
)

pytestmark = [
    pytest.mark.slow,
    # As in a wheel's tests, which have no pages.
    pytest.mark.skipif(not COMMANDS, reason="the tests run without the project's pages"),
]


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """A copy of what the programs need of the repository."""
    folder = tmp_path_factory.mktemp("copy")
    for name in ("benchmarks", "kbert", "tests", "docs", "export"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "README.md", folder)
    return folder


@pytest.fixture(scope="module")
def made_runs(tmp_path_factory) -> Path:
    """Runs that others go on from: models of their sizes that have learned nothing."""
    folder = tmp_path_factory.mktemp("made") / "runs"
    pieces, tiny = small_subwords(), ("tiny", len(small_subwords()))
    runs = folder / "mt"
    Translator(Transformer.from_size(*tiny), pieces, pieces, length_ratio=0.5).save_pretrained(
        runs / "vanilla-1" / "model"
    )
    bert = Bert(len(TOKENIZER.vocabulary), 32, 2, 2, 64, max_sequence_length=128)
    fused = BertFusedTransformer.from_size(*tiny, bert=bert)
    for name in ("fused-1", "fused-2", "random-1", "random-2"):
        model = Translator(fused, pieces, pieces, TOKENIZER, length_ratio=0.5)
        model.save_pretrained(runs / name / "model")
    shutil.copy(runs / "vanilla-1" / "model" / "source.model", runs / "multi30k_bpe.model")
    return folder


@pytest.fixture(scope="module")
def classifier(minilm_directory, tmp_path_factory) -> str:
    """A classifier without adapters, which peers cannot read, on the encoder of the pages."""
    made = Classifier.from_pretrained(minilm_directory, ["negative", "positive"])
    return str(made.save_pretrained(tmp_path_factory.mktemp("made") / "classifier"))


def placed(word: str, data: Path, runs: Path) -> str:
    """A word of a command with the places of data, of runs and of models for their names."""
    before, equals, path = word.rpartition("=")
    path = MADE.get(path, path)
    first, slash, rest = path.partition("/")
    if path in DATA or first in DATA:
        found = data / DATA.get(path, DATA.get(first, "")) / (rest if path not in DATA else "")
        return f"{before}{equals}{found}"
    return f"{before}{equals}{runs if first in RUNS else first}{slash}{rest}"


@pytest.mark.parametrize("command", COMMANDS)
def test_it_works_for_a_minute(
    command, copy, made_runs, classifier, minilm_directory, shared_data, tmp_path
):
    shutil.copytree(made_runs, tmp_path / "runs")
    if "biomedical_reader" in command:  # others make the same folders
        shutil.copytree(minilm_directory, tmp_path / "runs/biomedical/pretrained/model")
        (tmp_path / "runs/biomedical/data").mkdir()
        shutil.copy(sample_path("questions/questions.json"), tmp_path / GENERAL)
    words = [placed(word, shared_data, tmp_path / "runs") for word in shlex.split(command)]
    words = [classifier if word == "CLASSIFIER" else word for word in words]
    log = tmp_path / "log"
    environment = {**os.environ, "PYTHONPATH": str(copy), "TF_CPP_MIN_LOG_LEVEL": "3"}
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, *words],
            cwd=copy,
            env=environment,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            code = 0
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    told = log.read_text(encoding="utf-8", errors="replace")
    assert not broken_contenders(told)
    end = told[-1000:]
    # Packages of peers are in extras.
    if code and lacks_a_package(end):
        pytest.skip(f"needs packages of a peer: {end.strip().splitlines()[-1]}")
    assert code == 0, told[-2000:]

"""The benchmarks of the pages, begun on the real data: a minute of each, not the hours they take.

Each works in a copy of the repository, whose results are not those that are kept.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_documentation import ROOT, WITH_PROGRAMS, programs_of

# Ends of errors of programs that need other packages beside them.
PEERS = ("No module named", "pip install", "must be installed")
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


def placed(word: str, data: Path, runs: Path) -> str:
    """A word of a command with the places of data and of runs for their names."""
    before, equals, path = word.rpartition("=")
    first, slash, rest = path.partition("/")
    if path in DATA or first in DATA:
        found = data / DATA.get(path, DATA.get(first, "")) / (rest if path not in DATA else "")
        return f"{before}{equals}{found}"
    return f"{before}{equals}{runs if first in RUNS else first}{slash}{rest}"


@pytest.mark.parametrize("command", COMMANDS)
def test_it_works_for_a_minute(command, copy, shared_data, tmp_path):
    for word in shlex.split(command)[1:]:
        path = word.rpartition("=")[2]
        is_known = path.partition("/")[0] in (*DATA, *RUNS)
        if (path.isupper() and not is_known) or path.endswith("/model") or "runs/mt/" in path:
            # A trained run, or a peer's Python: no folder of the data stands in for it.
            pytest.skip(f"needs what others make: {path}")
    words = [placed(word, shared_data, tmp_path / "runs") for word in shlex.split(command)]
    (tmp_path / "runs").mkdir()
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
    end = told[-1000:]
    # Packages of peers are in extras, and a run that goes on from another needs hours of it first.
    if code and any(words in end for words in PEERS):
        pytest.skip(f"needs packages of a peer: {end.strip().splitlines()[-1]}")
    if code and "FileNotFoundError" in end and str(tmp_path / "runs") in end:
        pytest.skip(f"needs the run of another command: {end.strip().splitlines()[-1]}")
    assert code == 0, told[-2000:]

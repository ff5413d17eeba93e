"""Files that an earlier version wrote are read, and answer as they did: see goldens/README.md."""

import json
import tarfile
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import kbert
from kbert.export_check.check import check
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.run import train
from kbert.training.runs.run_directory import load_run
from tests.test_pinned_formats import TASKS as EVERY_TASK
from tests.training.eager_steps import eager_functions, eager_steps
from tests.written_before import ANSWERS, ARCHIVE, ASKED, answers, asked

# Those that came later have no files of an earlier version.
LATER = {"embedding", "several labels"}
TASKS = [task for task in EVERY_TASK if task not in LATER]
# Slow are those whose graphs take seconds, where others show the same of the format.
SLOW = {"translation", "translation with BERT", "span tagging", "named entities"}
EXPORTS = [
    pytest.param(task, marks=[pytest.mark.slow] * (task != "classification")) for task in TASKS
]
KERAS = [pytest.param(task, marks=[pytest.mark.slow] * (task in SLOW)) for task in TASKS]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the earlier version worked in."""
    folder = tmp_path_factory.mktemp("written")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="module")
def answered(written: Path) -> dict[str, Any]:
    """What it answered."""
    found: dict[str, Any] = json.loads((written / ANSWERS).read_text(encoding="utf-8"))
    return found


def assert_alike(found: Any, expected: Any) -> None:
    """The same keys, texts and places, and nearly the same numbers."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            assert_alike(found[key], value)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            assert_alike(one, other)
    elif isinstance(expected, float):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    else:
        assert found == expected


@pytest.mark.parametrize("task", TASKS)
def test_folders(task: str, written: Path, answered: dict[str, Any]):
    model = kbert.load(written / "models" / task.replace(" ", "-"))
    with eager_steps(), eager_functions():
        assert_alike(answers(model, asked(task)), answered["models"][task])


@pytest.mark.parametrize("task", KERAS)
def test_keras_files(task: str, written: Path, answered: dict[str, Any]):
    model = keras.models.load_model(written / "keras" / f"{task.replace(' ', '-')}.keras")
    with eager_steps(), eager_functions():
        assert_alike(answers(model, asked(task)), answered["models"][task])


@pytest.mark.parametrize("task", EXPORTS)
def test_exports(task: str, written: Path):
    """An export holds texts of its own, with what it answered to them.

    Those of before answer as they did; that a server batches them unchecked is found.
    """
    report = check(written / "exports" / task.replace(" ", "-"))
    failed = {one.name for one in report.checks if one.problems}
    unbatched = task == "multiple choice"
    assert failed == {"bad_requests"} | (set() if unbatched else {"batching"}), report.problems


@pytest.mark.parametrize("name", ASKED)
def test_runs(name: str, written: Path, answered: dict[str, Any]):
    run = load_run(written / "runs" / name)
    model = kbert.load(run.model_directory)
    with eager_steps(), eager_functions():
        assert_alike(answers(model, ASKED[name]), answered["runs"][name])


def test_a_run_of_a_translator(written: Path):
    run = load_run(written / "runs" / "translation")
    (translation,) = kbert.load(run.model_directory).translations(["one two"])
    assert isinstance(translation, str)


def test_a_stopped_run_goes_on(written: Path, monkeypatch: pytest.MonkeyPatch):
    """It ends as the run of the same configuration that was never stopped."""
    monkeypatch.chdir(written)
    config = RunConfig.from_yaml("stopped/run.incomplete/config.yaml")
    stopped = load_run(train(config))
    log = (stopped.directory / "log.txt").read_text(encoding="utf-8")
    assert "goes on after step" in log
    whole = load_run("runs/classification")
    for one, other in zip(stopped.metrics["epochs"], whole.metrics["epochs"], strict=True):
        assert_alike(one["training"], other["training"])
        assert_alike(one["validation"], other["validation"])
    assert_alike(stopped.metrics["final"], whole.metrics["final"])

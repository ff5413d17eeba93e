"""Workers that Ray starts train as one process does; Ray is not among the test requirements."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kbert.training.config.any_config import config_from_dict
from kbert.training.run import train
from kbert.training.runs.run_directory import load_run
from tests.training.tiny_runs import WORDS, write_vocabulary

MISSING = 'pip install ".[ray]"'


def values(folder: Path, **others: Any) -> dict[str, Any]:
    """The configuration of a run of six steps on labelled words."""
    words = ["good film", "bad film", *WORDS]
    rows = "".join(f"{word} {word}\t{i % 2}\n" for i, word in enumerate(words[:12]))
    (folder / "train.tsv").write_text(f"text\tlabel\n{rows}")
    return {
        "task": "classification",
        "train": str(folder / "train.tsv"),
        "vocabulary": str(write_vocabulary(folder)),
        "encoder": "scratch:tiny",
        "epochs": 2,
        "batch_size": 4,
        "save_every": 2,
        "dropout": 0.0,
        "encoder_dropout": 0.0,
        **others,
    }


def test_without_ray(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ray.train", None)
    monkeypatch.delitem(sys.modules, "kbert.launch.ray_train", raising=False)
    with pytest.raises(ImportError, match=r'pip install "\.\[ray\]"'):
        importlib.import_module("kbert.launch.ray_train")


def test_what_could_not_be_resumed_is_refused_before_ray_starts(tmp_path: Path):
    pytest.importorskip("ray.train", reason=MISSING)
    from kbert.launch.ray_train import ScalingConfig, train_with_ray

    given = values(tmp_path, output=str(tmp_path / "run"))
    for wrong, told in (
        ({"overwrite": True}, "`overwrite` must be left out"),
        ({"resume": False}, "`resume` must be left out"),
        ({"save_every": None}, "`save_every` must be given"),
        ({"train": str(tmp_path / "none.tsv")}, "`--train` must be a file"),
    ):
        with pytest.raises((ValueError, FileNotFoundError), match=told):
            train_with_ray(config_from_dict({**given, **wrong}), ScalingConfig(num_workers=2))


@pytest.fixture
def placed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """The configurations that a stand-in of Ray, whose workers train nothing, was given."""
    given: list[dict[str, Any]] = []

    def trainer(loop: Any, train_loop_config: dict[str, Any], **others: Any) -> SimpleNamespace:
        return SimpleNamespace(fit=lambda: given.append(train_loop_config))

    parts = dict.fromkeys(("FailureConfig", "RunConfig", "ScalingConfig"), SimpleNamespace)
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "ray.train", SimpleNamespace(**parts))
    of_tensorflow = SimpleNamespace(TensorflowTrainer=trainer)
    monkeypatch.setitem(sys.modules, "ray.train.tensorflow", of_tensorflow)
    monkeypatch.delitem(sys.modules, "kbert.launch.ray_train", raising=False)
    yield given
    sys.modules.pop("kbert.launch.ray_train", None)  # it holds the stand-in


def test_an_output_that_exists_is_told_before_ray_starts(
    tmp_path: Path, placed: list[dict[str, Any]]
):
    module = importlib.import_module("kbert.launch.ray_train")
    output = tmp_path / "run"
    config = config_from_dict(values(tmp_path, output=str(output)))
    scaling = module.ScalingConfig(num_workers=2)
    (tmp_path / "run.incomplete").mkdir()  # it goes on with a run that was stopped
    assert module.train_with_ray(config, scaling) == output
    assert [one["strategy"] for one in placed] == ["multi-worker"]
    output.mkdir()
    with pytest.raises(FileExistsError, match="`output` must not exist yet"):
        module.train_with_ray(config, scaling)
    assert len(placed) == 1


@pytest.mark.slow
def test_two_workers_of_ray_train_as_one_process_does(tmp_path: Path):
    pytest.importorskip("ray.train", reason=MISSING)
    from kbert.launch.ray_train import ScalingConfig, train_with_ray

    given = values(tmp_path)
    config = config_from_dict({**given, "output": str(tmp_path / "two")})
    two = train_with_ray(config, ScalingConfig(num_workers=2, resources_per_worker={"CPU": 0.5}))
    one = train(config_from_dict({**given, "output": str(tmp_path / "one")}))
    found, expected = (
        [epoch["training"]["loss"] for epoch in load_run(run).metrics["epochs"]]
        for run in (two, one)
    )
    assert found == pytest.approx(expected, abs=1e-5) and len(found) == 2

"""The runner with a recipe that trains in milliseconds: one weight, and batches of one number."""

import json
import os
import signal
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.training.callbacks.epoch_record import EpochRecord
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.recipes.recipe import EpochRecipe, run_recipe
from kbert.training.runs.run_directory import load_run
from kbert.training.runs.stopped_runs import TrainingStopped

BATCHES = 4


class Line(keras.Sequential):
    """y = w x; saved as a file with w."""

    def save_pretrained(self, folder):
        Path(folder).mkdir(parents=True)
        np.save(Path(folder) / "w.npy", self.get_weights()[0])

    def fit(self, *args, **kwargs):
        return super().fit(*args, shuffle=False, **kwargs)


class LineRecipe(EpochRecipe):
    """Learns w from numbers whose order is that of seed and epoch."""

    calls: list[str]

    def prepare(self, kept):
        self.calls = ["prepare"]
        self.kept = kept
        layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones", name="w")
        self.model = Line([keras.Input((1,)), layer], name="line")
        self.model.compile(keras.optimizers.Adam(0.1), "mse", run_eagerly=True)
        self.order = "the order"
        self.report = {"task": "line", "data_sha256": "aa"}

    def write_start(self, folder):
        (folder / "own.txt").write_text("of the recipe")

    def new_record(self, folder):
        return EpochRecord(self.config, None, "loss", BATCHES, folder / "checkpoints", self.log)

    def batches(self, epoch, batch):
        numbers = np.random.default_rng([self.config.seed, epoch]).uniform(1, 2, (BATCHES, 1, 1))
        pairs = tf.data.Dataset.from_tensor_slices((numbers, 3 * numbers)).skip(batch)
        return pairs

    def batch_counts(self):
        return [BATCHES] * self.config.epochs

    def pieces(self):
        return {}

    def write_model(self, folder):
        self.calls.append("finish")
        (folder / "model").mkdir(exist_ok=True)
        return {}

    def measured(self, folder):
        return {"weight": float(np.load(self.record.kept / "w.npy")[0, 0])}


def config(output, **values):
    given = {"train": "t.tsv", "encoder": "e", "save_every": 1, "epochs": 2, **values}
    return RunConfig.from_dict({"output": str(output), **given})


def run(config):
    return load_run(run_recipe(LineRecipe(config)))


def stop_after(steps, config, monkeypatch):
    """Ends a run after some steps, as a power cut would."""
    done = []

    def count(self, batch, logs=None):
        done.append(batch)
        if len(done) > steps:
            raise RuntimeError("power")

    with monkeypatch.context() as patched, pytest.raises(RuntimeError, match="power"):
        patched.setattr(EpochRecord, "on_train_batch_begin", count)
        run_recipe(LineRecipe(config))


def test_a_run_is_whole_or_not_there(tmp_path, monkeypatch):
    stop_after(1, config(tmp_path / "run"), monkeypatch)
    assert os.listdir(tmp_path) == ["run.incomplete"]
    found = run(config(tmp_path / "run"))
    assert os.listdir(tmp_path) == ["run"]
    assert sorted(os.listdir(tmp_path / "run")) == [
        *("config.yaml", "environment.json", "log.txt", "metrics.json", "model", "own.txt"),
        "report.json",
    ]
    assert found.metrics["seconds"] > 0 and len(found.metrics["epochs"]) == 2
    assert json.loads((tmp_path / "run" / "report.json").read_text())["data_sha256"] == "aa"


def test_the_seconds_of_a_run_are_those_of_all_its_processes(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(LineRecipe, "seconds", lambda self: 1000.0)
        stop_after(2, config(tmp_path / "run"), patched)
    stop_after(3, config(tmp_path / "run"), monkeypatch)  # goes on for a moment
    assert 1000.0 < run(config(tmp_path / "run")).metrics["seconds"] < 1100.0


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that was never stopped."""
    return run(config(tmp_path_factory.mktemp("whole") / "run"))


@pytest.mark.parametrize("steps", range(1, 2 * BATCHES))
def test_a_run_that_was_stopped_anywhere_ends_with_the_same_weight(
    steps, whole, tmp_path, monkeypatch
):
    stop_after(steps, config(tmp_path / "run"), monkeypatch)
    resumed = run(config(tmp_path / "run"))
    assert resumed.metrics["final"] == whole.metrics["final"]
    losses = [[e["training"]["loss"] for e in r.metrics["epochs"]] for r in (whole, resumed)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-6)
    assert f"goes on after step {steps}, in" in (tmp_path / "run" / "log.txt").read_text()


@pytest.fixture
def sigint():
    """A shell lets what it runs in the background ignore Ctrl-C, and so would the run."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.SIGINT
    signal.signal(signal.SIGINT, before)


def test_a_stop_when_the_model_is_measured_loses_no_step(tmp_path, monkeypatch, sigint):
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(LineRecipe, "finish", lambda self, folder: signal.raise_signal(sigint))
        run_recipe(LineRecipe(config(tmp_path / "run")))
    assert f"goes on after step {2 * BATCHES}" not in (
        (tmp_path / "run.incomplete" / "log.txt").read_text()
    )
    run(config(tmp_path / "run"))
    assert f"goes on after step {2 * BATCHES}" in (tmp_path / "run" / "log.txt").read_text()


def test_a_signal_saves_and_says_how_to_go_on(tmp_path, monkeypatch):
    def ask(self, batch, logs=None):
        signal.raise_signal(15)

    with monkeypatch.context() as patched, pytest.raises(TrainingStopped) as error:
        patched.setattr(EpochRecord, "on_train_batch_begin", ask)
        run_recipe(LineRecipe(config(tmp_path / "run")))
    assert str(error.value).startswith("stopped by SIGTERM after step 1. ")


def test_only_the_same_configuration_is_resumed(tmp_path, monkeypatch):
    stop_after(1, config(tmp_path / "run"), monkeypatch)
    with pytest.raises(ValueError, match=r"Received: epochs=3 \(it had 2\)"):
        run_recipe(LineRecipe(config(tmp_path / "run", epochs=3)))
    longer = run(config(tmp_path / "run", epochs=3, allow_config_change=True))
    assert len(longer.metrics["epochs"]) == 3
    with pytest.raises(FileExistsError, match="must not exist yet"):
        run_recipe(LineRecipe(config(tmp_path / "run")))


def test_the_recipe_learns_what_was_kept(tmp_path, monkeypatch):
    recipe = LineRecipe(config(tmp_path / "run"))
    stop_after(1, config(tmp_path / "run"), monkeypatch)
    run_recipe(recipe)
    assert recipe.kept == tmp_path / "run.incomplete" and recipe.calls == ["prepare", "finish"]

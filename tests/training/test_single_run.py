import json
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import yaml
from safetensors.numpy import load_file

from kbert.pipelines.load import load
from kbert.training import single_run
from kbert.training.epoch_record import EpochRecord
from kbert.training.run_directory import load_run, write_json
from kbert.training.single_run import train_once
from kbert.training.stop_signals import TrainingStopped
from tests.pinned import check_run


def test_what_a_run_holds(finished_run):
    assert sorted(os.listdir(finished_run)) == [
        "config.yaml",
        "environment.json",
        "log.txt",
        "metrics.json",
        "model",
        "report.json",
    ]
    assert sorted(os.listdir(finished_run / "model")) == [
        "kbert.json",
        "model.safetensors",
        "vocabulary.txt",
    ]
    assert os.listdir(finished_run.parent) == ["finished"]
    files = ("config.yaml", "metrics.json", "report.json", "log.txt", "environment.json")
    check_run("fine-tuning", finished_run, (*files, "model/kbert.json"))


def test_the_numbers_of_a_run(finished_run, tiny):
    run = load_run(finished_run)
    assert [epoch["epoch"] for epoch in run.metrics["epochs"]] == [1, 2]
    best = run.metrics["epochs"][run.metrics["kept_epoch"] - 1]
    assert best["validation"]["accuracy"] == max(
        epoch["validation"]["accuracy"] for epoch in run.metrics["epochs"]
    )
    # What is measured at the end is what was written: the same as when the epoch was kept.
    assert run.metrics["final"]["validation"]["cross_entropy"] == pytest.approx(
        best["validation"]["cross_entropy"], abs=1e-6
    )
    assert set(run.metrics["final"]) == {"validation", "test"}
    report = json.loads((finished_run / "report.json").read_text())
    assert report["examples"]["train"]["count"] == 24 and report["steps"] == 6
    assert yaml.safe_load((finished_run / "config.yaml").read_text())["epochs"] == 2
    assert run.config == tiny.config(finished_run, test=tiny.texts["test"])


def test_the_model_of_a_run_predicts_as_it_was_measured(finished_run, tiny):
    run = load_run(finished_run)
    model = load(run.model_directory)
    rows = [line.split("\t") for line in Path(tiny.texts["test"]).read_text().splitlines()[1:]]
    predicted = model.predict([row[0] for row in rows]).argmax(-1)
    accuracy = np.mean([model.labels[i] == row[1] for i, row in zip(predicted, rows)])
    assert accuracy == run.metrics["final"]["test"]["accuracy"]


def test_the_log_tells_the_run(finished_run):
    text = (finished_run / "log.txt").read_text()
    assert "train: 24 examples" in text and "epoch 2/2: loss " in text and "finished in" in text


def test_pairs_scores_tensorboard_and_mixed_precision(tiny, tmp_path):
    values = {"task": "regression", "train": tiny.pairs, "validation": tiny.pairs, "epochs": 1}
    values |= {"tensorboard": True, "precision": "mixed_bfloat16", "batch_tokens": 40}
    path = train_once(tiny.config(tmp_path / "run", **values))
    run = load_run(path)
    assert run.metrics["monitor"] == "pearson"
    assert set(run.metrics["final"]["validation"]) == {"pearson", "spearman", "mse"}
    check_run("fine-tuning, regression", path, ("metrics.json", "report.json"))
    model = load(run.model_directory)
    assert model.pair and model.predict((["good"], ["bad"])).shape == (1,)


def test_choices_without_validation(tiny, tmp_path):
    values = {"task": "multiple-choice", "train": tiny.choices, "validation": None, "epochs": 1}
    run = load_run(train_once(tiny.config(tmp_path / "run", **values)))
    assert run.metrics["monitor"] is None and run.metrics["final"] == {}
    assert run.metrics["kept_epoch"] == 1
    check_run("fine-tuning, multiple choice", run.directory, ("metrics.json", "report.json"))
    assert len(load(run.model_directory).answers((["the"], [["good", "bad"]]))[0]["scores"]) == 2


def test_bad_input_writes_nothing(tiny, tmp_path):
    bad = tmp_path / "bad.tsv"
    bad.write_text("text\tlabel\ngood\tsideways\n")
    with pytest.raises(ValueError, match="the label must be one of `down`, `up`. Received: 'si"):
        train_once(tiny.config(tmp_path / "run", validation=str(bad)))
    assert os.listdir(tmp_path) == ["bad.tsv"]


def test_an_existing_run_is_refused_before_any_work(finished_run, tiny):
    with pytest.raises(FileExistsError, match="`output` must not exist yet, unless overwrite"):
        train_once(tiny.config(finished_run, train="no such file"))


def weights(run):
    return load_file(load_run(run).model_directory / "model.safetensors")


def test_a_killed_training_is_no_run_and_goes_on_to_the_same_weights(tiny, tmp_path):
    values = {"epochs": 10, "save_every": 7, "dropout": 0.3, "monitor": "cross_entropy"}
    config = tiny.config(tmp_path / "run", **values)
    states = tmp_path / "run.incomplete" / "states"
    command = [sys.executable, "-c", PROGRAM, json.dumps(config.to_dict())]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 300
        while not list(states.glob("step-*/state.json")) and time.monotonic() < deadline:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert os.listdir(tmp_path) == ["run.incomplete"]
    for folder in ("run", "run.incomplete"):
        with pytest.raises(FileNotFoundError, match="stopped before its end"):
            load_run(tmp_path / folder)
    with pytest.raises(FileExistsError, match="Set resume to go on with it"):
        train_once(config.with_values(resume=False))
    with pytest.raises(ValueError, match=r"Received: seed=2 \(it had 1\). Set allow_config_change"):
        train_once(config.with_values(seed=2))
    run = load_run(train_once(config))
    whole = load_run(train_once(tiny.config(tmp_path / "whole", **values)))
    for name, array in weights(whole.directory).items():
        np.testing.assert_array_equal(array, weights(run.directory)[name], err_msg=name)
    names = ("training", "validation", "epoch")
    for one, other in zip(run.metrics["epochs"], whole.metrics["epochs"], strict=True):
        assert {name: one[name] for name in names} == {name: other[name] for name in names}
    assert run.metrics["final"] == whole.metrics["final"]
    assert sorted(os.listdir(run.directory)) == sorted(os.listdir(whole.directory))
    assert "goes on after step" in (run.directory / "log.txt").read_text()


PROGRAM = """
import json, sys
from kbert.training.run import train
from kbert.training.run_config import RunConfig
train(RunConfig.from_dict(json.loads(sys.argv[1])))
"""


def ask_to_stop(monkeypatch, batches):
    """Sends SIGTERM in the middle of a step, once."""
    seen = []

    def count(self, batch, logs=None):
        seen.append(batch)
        if len(seen) == batches:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(EpochRecord, "on_train_batch_begin", count)


FILES = {"question-answering": "questions", "ner": "sentences", "multiple-choice": "choices"}


@pytest.mark.parametrize(
    "task",
    [
        "multiple-choice",
        pytest.param("question-answering", marks=pytest.mark.slow),
        pytest.param("ner", marks=pytest.mark.slow),
    ],
)
def test_every_task_stops_when_asked_and_goes_on(task, tiny, tmp_path, monkeypatch):
    values = {"batch_size": 3, "epochs": 2}
    file = getattr(tiny, FILES[task])
    if task == "multiple-choice":
        values |= {"task": task, "train": file, "validation": file}
        make = tiny.config
    else:
        make = partial(tiny.reading, task=task, file=file)
    config = make(tmp_path / "run", **values)
    with monkeypatch.context() as patched, pytest.raises(TrainingStopped, match="by SIGTERM after"):
        ask_to_stop(patched, 2)
        train_once(config)
    run = load_run(train_once(config))
    whole = load_run(train_once(make(tmp_path / "whole", **values)))
    for name, array in weights(whole.directory).items():
        np.testing.assert_array_equal(array, weights(run.directory)[name], err_msg=name)
    assert run.metrics["final"] == whole.metrics["final"]


def test_steps_that_are_one_call(finished_run, tiny, tmp_path, monkeypatch, bar_steps):
    """Three steps an epoch: two, and the third; SIGTERM comes in the first call of two."""
    values = {"steps_per_execution": 2, "save_every": 2, "test": tiny.texts["test"]}
    whole = load_run(train_once(tiny.config(tmp_path / "whole", **values)))
    for one, single in zip(whole.metrics["epochs"], load_run(finished_run).metrics["epochs"]):
        assert one["training"] == pytest.approx(single["training"], rel=1e-3)
    config = tiny.config(tmp_path / "run", **values)
    with monkeypatch.context() as patched, pytest.raises(TrainingStopped, match="after step 2. "):
        ask_to_stop(patched, 1)
        train_once(config)
    bar_steps.clear()
    run = load_run(train_once(config))
    assert bar_steps == [("epoch 1/2", 3, 3), ("epoch 2/2", 2, 3), ("epoch 2/2", 3, 3)]
    for name, array in weights(whole.directory).items():
        np.testing.assert_array_equal(array, weights(run.directory)[name], err_msg=name)
    names = ("training", "validation", "epoch")
    for one, other in zip(run.metrics["epochs"], whole.metrics["epochs"], strict=True):
        assert {name: one[name] for name in names} == {name: other[name] for name in names}


def batches_of(monkeypatch, config):
    """How many batches a run trains on."""
    seen = []
    with monkeypatch.context() as patched:
        patched.setattr(EpochRecord, "on_train_batch_begin", lambda *_, **__: seen.append(1))
        train_once(config)
    return len(seen)


@pytest.mark.parametrize("values, batches", [({"batch_size": 12}, 2), ({"seed": 2}, 3)])
def test_another_order_begins_the_epoch_anew(values, batches, tiny, tmp_path, monkeypatch, capsys):
    config = tiny.config(tmp_path / "run", epochs=1)
    with monkeypatch.context() as patched, pytest.raises(TrainingStopped, match="after step 2"):
        ask_to_stop(patched, 2)
        train_once(config)
    changed = config.with_values(allow_config_change=True, **values)
    with monkeypatch.context() as patched, pytest.raises(RuntimeError, match="power"):
        patched.setattr(single_run, "fit_from", fail)  # all but a first state was written
        train_once(changed)
    assert batches_of(monkeypatch, changed) == batches
    assert "Warning: the batches come in another order" in capsys.readouterr().err


def test_what_was_stopped_at_its_very_end_goes_on_in_another_configuration(
    tiny, tmp_path, monkeypatch
):
    """Once before there were metrics, and once behind them."""

    def before_metrics(value, path):
        if path.name == "metrics.json":
            raise RuntimeError("power")
        write_json(value, path)

    def behind_metrics(folder, **kwargs):
        if Path(folder).name == "states" and (Path(folder).parent / "metrics.json").exists():
            raise RuntimeError("power")
        remove(folder, **kwargs)

    remove = shutil.rmtree
    values = {"keep": "last", "save_every": 1, "allow_config_change": True, "batch_size": 12}
    config = tiny.config(tmp_path / "run", epochs=1, **values)
    with monkeypatch.context() as patched, pytest.raises(RuntimeError, match="power"):
        patched.setattr(single_run, "write_json", before_metrics)
        train_once(config)
    with monkeypatch.context() as patched, pytest.raises(RuntimeError, match="power"):
        patched.setattr(single_run.shutil, "rmtree", behind_metrics)
        train_once(config.with_values(epochs=2))
    longer = load_run(train_once(config.with_values(epochs=3)))
    assert longer.metrics["kept_epoch"] == longer.config.epochs == 3
    last = longer.metrics["epochs"][-1]["validation"]["cross_entropy"]
    final = longer.metrics["final"]["validation"]["cross_entropy"]
    assert final == pytest.approx(last, abs=1e-6)
    # Three epochs are others than two: what was measured is of the model that is delivered.
    assert final != pytest.approx(longer.metrics["epochs"][1]["validation"]["cross_entropy"])


def fail(*args, **kwargs):
    raise RuntimeError("power")


@pytest.mark.slow
def test_other_examples_begin_the_epoch_anew(tiny, tmp_path, monkeypatch, capsys):
    config = tiny.config(tmp_path / "run", epochs=2)
    with monkeypatch.context() as patched, pytest.raises(TrainingStopped, match="after step 2"):
        ask_to_stop(patched, 2)
        train_once(config)
    file = tmp_path / "train.tsv"
    file.write_text("".join(Path(tiny.texts["train"]).read_text().splitlines(True)[:9]))
    run = train_once(config.with_values(train=str(file), allow_config_change=True))
    told = capsys.readouterr().err
    assert "Warning: goes on with another configuration: train=" in told
    assert "Warning: goes on with other data than before" in told
    assert [epoch["epoch"] for epoch in load_run(run).metrics["epochs"]] == [1, 2]

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

from kbert.tasks.load import load
from kbert.training.callbacks.epoch_record import EpochRecord
from kbert.training.recipes import recipe as recipe_module
from kbert.training.recipes.finetuning import RunData, monitored_metric, train_once
from kbert.training.runs.run_directory import load_run, write_json
from kbert.training.runs.stopped_runs import TrainingStopped
from tests.pinned import check_run
from tests.training.eager_steps import eager_steps


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


def test_pairs_scores_tensorboard_and_mixed_precision(tiny, tmp_path, eagerly):
    values = {"task": "regression", "train": tiny.pairs, "validation": tiny.pairs, "epochs": 1}
    values |= {"tensorboard": True, "precision": "mixed_bfloat16", "batch_tokens": 40}
    path = train_once(tiny.config(tmp_path / "run", **values))
    run = load_run(path)
    assert run.metrics["monitor"] == "pearson"
    assert set(run.metrics["final"]["validation"]) == {"pearson", "spearman", "mse"}
    check_run("fine-tuning, regression", path, ("metrics.json", "report.json"))
    model = load(run.model_directory)
    assert model.pair and model.predict((["good"], ["bad"])).shape == (1,)


def choices_config(tiny, output):
    """Of three steps, without validation."""
    values = {"task": "multiple-choice", "train": tiny.choices, "validation": None, "epochs": 1}
    return tiny.config(output, **values, batch_size=3)


@pytest.fixture(scope="module")
def choices_run(tiny, tmp_path_factory):
    with eager_steps():
        return train_once(choices_config(tiny, tmp_path_factory.mktemp("choices") / "run"))


def test_choices_without_validation(choices_run):
    run = load_run(choices_run)
    assert run.metrics["monitor"] is None and run.metrics["final"] == {}
    assert run.metrics["kept_epoch"] == 1
    said = (run.directory / "log.txt").read_text()
    assert "not measured: neither --validation nor --test was given" in said
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
    return load_file(run.model_directory / "model.safetensors")


def assert_same(run, whole):
    """Bit by bit, but for the times."""
    expected = weights(whole)
    assert weights(run).keys() == expected.keys()
    for name, array in weights(run).items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)
    names = ("training", "validation", "epoch")
    for one, other in zip(run.metrics["epochs"], whole.metrics["epochs"], strict=True):
        assert {name: one.get(name) for name in names} == {name: other.get(name) for name in names}
    assert run.metrics["final"] == whole.metrics["final"]


def is_no_run(config):
    """What a stop left, and all that does not go on with it."""
    output = Path(config.output)
    assert os.listdir(output.parent) == [f"{output.name}.incomplete"]
    for folder in (output, output.with_name(f"{output.name}.incomplete")):
        with pytest.raises(FileNotFoundError, match="stopped before its end"):
            load_run(folder)
    with pytest.raises(FileExistsError, match="Set resume to go on with it"):
        train_once(config.with_values(resume=False))
    with pytest.raises(ValueError, match=r"Received: seed=2 \(it had 1\). Set allow_config_change"):
        train_once(config.with_values(seed=2))


@pytest.mark.slow
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
    is_no_run(config)
    run = load_run(train_once(config))
    whole = load_run(train_once(tiny.config(tmp_path / "whole", **values)))
    assert_same(run, whole)
    assert sorted(os.listdir(run.directory)) == sorted(os.listdir(whole.directory))
    assert "goes on after step" in (run.directory / "log.txt").read_text()


PROGRAM = """
import json, sys
from kbert.training.run import train
from kbert.training.config.finetuning_config import RunConfig
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


def stop_after(batches, config, monkeypatch):
    """Trains until SIGTERM comes in the middle of a step."""
    with monkeypatch.context() as patched, pytest.raises(TrainingStopped, match="by SIGTERM after"):
        ask_to_stop(patched, batches)
        train_once(config)


@pytest.mark.slow
def test_choices_stop_when_asked_and_go_on(choices_run, tiny, tmp_path, monkeypatch, eagerly):
    config = choices_config(tiny, tmp_path / "run")
    stop_after(2, config, monkeypatch)
    assert_same(load_run(train_once(config)), load_run(choices_run))


@pytest.mark.slow
@pytest.mark.parametrize(
    "task, file", [("question-answering", "questions"), ("ner", "sentences")]
)
def test_every_reading_stops_when_asked_and_goes_on(task, file, tiny, tmp_path, monkeypatch):
    values = {"batch_size": 3, "epochs": 2}
    make = partial(tiny.reading, task=task, file=getattr(tiny, file), **values)
    config = make(tmp_path / "run")
    stop_after(2, config, monkeypatch)
    assert_same(load_run(train_once(config)), load_run(train_once(make(tmp_path / "whole"))))


@pytest.mark.slow
def test_a_stopped_training_is_no_run_and_goes_on_to_the_same_weights(
    finished_run, tiny, tmp_path, monkeypatch, eagerly, bar_steps
):
    """Three steps an epoch are two calls, of two and of one; SIGTERM comes in the first one."""
    values = {"steps_per_execution": 2, "save_every": 2, "test": tiny.texts["test"]}
    (tmp_path / "stopped").mkdir()
    config = tiny.config(tmp_path / "stopped" / "run", **values)
    stop_after(1, config, monkeypatch)
    is_no_run(config)
    bar_steps.clear()
    run = load_run(train_once(config))
    assert bar_steps == [("epoch 1/2", 3, 3), ("epoch 2/2", 2, 3), ("epoch 2/2", 3, 3)]
    whole = load_run(train_once(tiny.config(tmp_path / "whole", **values)))
    assert_same(run, whole)
    for one, single in zip(whole.metrics["epochs"], load_run(finished_run).metrics["epochs"]):
        assert one["training"] == pytest.approx(single["training"], rel=1e-3)
    assert "goes on after step 2" in (run.directory / "log.txt").read_text()
    assert sorted(os.listdir(run.directory)) == sorted(os.listdir(whole.directory))


@pytest.fixture(scope="module")
def stopped(tiny, tmp_path_factory):
    """What SIGTERM left of an epoch of three steps, of which two were done."""
    config = tiny.config(tmp_path_factory.mktemp("stopped") / "run", epochs=1)
    with pytest.MonkeyPatch.context() as patched, eager_steps():
        stop_after(2, config, patched)
    return config


@pytest.mark.parametrize("values, batches", [({"batch_size": 12}, 2), ({"seed": 2}, 3), ({}, 1)])
def test_another_order_begins_the_epoch_anew(
    values, batches, stopped, tmp_path, monkeypatch, capsys
):
    """Also where the first process that found it wrote all but a first state."""
    found = []

    def begin(model, position, epochs, dataset, **kwargs):
        left = dataset(position.epoch, position.batch)
        found.append((position.epoch, int(left.cardinality())))
        raise RuntimeError("power")

    incomplete = Path(f"{stopped.output}.incomplete")
    shutil.copytree(incomplete, tmp_path / "run.incomplete")
    output = str(tmp_path / "run")
    changed = stopped.with_values(output=output, allow_config_change=bool(values), **values)
    monkeypatch.setattr(recipe_module, "fit_from", begin)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="power"):
            train_once(changed)
    assert found == [(0, batches)] * 2
    told = "Warning: the batches come in another order"
    assert (told in capsys.readouterr().err) == bool(values)


def test_what_was_stopped_at_its_very_end_goes_on_in_another_configuration(
    tiny, tmp_path, monkeypatch, eagerly
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
        patched.setattr(recipe_module.runs, "write_json", before_metrics)
        train_once(config)
    with monkeypatch.context() as patched, pytest.raises(RuntimeError, match="power"):
        patched.setattr(recipe_module.shutil, "rmtree", behind_metrics)
        train_once(config.with_values(epochs=2))
    longer = load_run(train_once(config.with_values(epochs=3)))
    assert longer.metrics["kept_epoch"] == longer.config.epochs == 3
    last = longer.metrics["epochs"][-1]["validation"]["cross_entropy"]
    final = longer.metrics["final"]["validation"]["cross_entropy"]
    assert final == pytest.approx(last, abs=1e-6)
    # Three epochs are others than two: what was measured is of the model that is delivered.
    assert final != pytest.approx(longer.metrics["epochs"][1]["validation"]["cross_entropy"])


@pytest.mark.slow
def test_other_examples_begin_the_epoch_anew(tiny, tmp_path, monkeypatch, capsys):
    config = tiny.config(tmp_path / "run", epochs=2)
    stop_after(2, config, monkeypatch)
    file = tmp_path / "train.tsv"
    file.write_text("".join(Path(tiny.texts["train"]).read_text().splitlines(True)[:9]))
    run = train_once(config.with_values(train=str(file), allow_config_change=True))
    told = capsys.readouterr().err
    assert "Warning: goes on with another configuration: train=" in told
    assert "Warning: goes on with other data than before" in told
    assert [epoch["epoch"] for epoch in load_run(run).metrics["epochs"]] == [1, 2]


def test_the_monitored_metric(tiny, tmp_path):
    def chosen(labels, glue=None, **values):
        data = RunData(None, None, None, labels, glue)
        values = {"validation": tiny.texts["validation"], **values}
        return monitored_metric(tiny.config(tmp_path / "o", **values), data)

    assert chosen(["a", "b"]) == "accuracy" and chosen(["a", "b"], "cola") == "matthews"
    assert chosen(["a", "b"], monitor="f1") == "f1"
    assert chosen(None, task="regression") == "pearson"
    assert chosen(None, task="multiple-choice", monitor="cross_entropy") == "cross_entropy"
    with pytest.raises(ValueError, match="`monitor` must be one of .*Received: monitor='f1'"):
        chosen(["a", "b", "c"], monitor="f1")

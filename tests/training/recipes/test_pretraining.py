"""Whole runs of a tiny encoder: what they hold, and that a stop changes nothing."""

import errno
import json
import os
import signal
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import load_file

from kbert.storage import files
from kbert.tasks.classification.model import Classifier
from kbert.tasks.load import load
from kbert.tasks.pretraining.model import MaskedLanguageModel
from kbert.training.callbacks.interval_record import IntervalRecord
from kbert.training.distributed.tf_config import worker_config
from kbert.training.pretraining.sources import read_text
from kbert.training.recipes import pretraining as pretraining_run
from kbert.training.recipes.pretraining import intervals_from
from kbert.training.run import train
from kbert.training.runs.run_directory import load_run
from kbert.training.runs.stopped_runs import TrainingStopped
from tests.pinned import check_run
from tests.training.eager_steps import eager_steps
from tests.training.tiny_corpus import TinyCorpus
from tests.training.tiny_runs import write_encoder


@pytest.fixture(scope="module")
def tiny_corpus(tmp_path_factory):
    return TinyCorpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def finished(tiny_corpus, tmp_path_factory):
    with eager_steps():
        return load_run(train(tiny_corpus.config(tmp_path_factory.mktemp("runs") / "finished")))


@pytest.fixture
def lean(eagerly, monkeypatch):
    """Leaves out what is told of a run as a whole: of its text, its speed, and its last numbers."""
    monkeypatch.setattr(pretraining_run.sources, "check_examples", lambda *_: None)
    monkeypatch.setattr(pretraining_run.sources, "input_speed", lambda *_: 1e6)
    monkeypatch.setattr(pretraining_run.models, "measure_pretrained", lambda *_: {})


def assert_same(run, whole):
    """Bit by bit, but for the times."""
    expected = load_file(whole.model_directory / "model.safetensors")
    found = load_file(run.model_directory / "model.safetensors")
    assert found.keys() == expected.keys()
    for name, array in found.items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)
    kinds = ("step", "training", "validation")
    for one, other in zip(run.metrics["intervals"], whole.metrics["intervals"], strict=True):
        assert {k: one.get(k) for k in kinds} == {k: other.get(k) for k in kinds}


@pytest.mark.parametrize("stop, left", [(1, []), (2, ["merges.txt"])])
def test_a_full_disk_leaves_no_part_of_a_vocabulary(tmp_path, monkeypatch, stop, left):
    """That of a stopped run is taken as it stands; without one it is learned again."""
    contents = {"vocab.json": b"{}", "merges.txt": b"a b"}
    run = SimpleNamespace(model=SimpleNamespace(tokenizer=SimpleNamespace(files=lambda: contents)))
    flush, calls = files._flush, []

    def flushed(path):
        calls.append(path)
        if len([one for one in calls if one.suffix == ".partial"]) == stop:
            raise OSError(errno.ENOSPC, "No space left on device")
        flush(path)

    monkeypatch.setattr(files, "_flush", flushed)
    with pytest.raises(OSError, match="No space"):
        pretraining_run.Pretraining.write_start(run, tmp_path)
    assert os.listdir(tmp_path) == left


def test_what_a_run_holds(finished, tmp_path):
    assert sorted(os.listdir(finished.directory)) == [
        "config.yaml",
        "environment.json",
        "log.txt",
        "metrics.json",
        "model",
        "report.json",
    ]
    files = ("config.yaml", "metrics.json", "report.json", "log.txt")
    check_run("pretraining", finished.directory, (*files, "model/kbert.json"))
    assert finished.config.task == "pretraining" and finished.config.steps == 5
    model = load(finished.model_directory)
    assert isinstance(model, MaskedLanguageModel) and model.objective == "mlm_nsp"
    (answer,) = model.answers(["the film was [MASK]."])
    assert len(answer["masks"]) == 1
    classifier = Classifier.from_pretrained(finished.model_directory, ["a", "b"])
    for one, other in zip(classifier.encoder.weights, model.encoder.weights, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_numbers_of_a_run(finished):
    intervals = finished.metrics["intervals"]
    assert [one["step"] for one in intervals] == [2, 4, 5]
    names = {"loss", "masked_loss", "masked_accuracy", "perplexity"}
    names |= {"next_sentence_loss", "next_sentence_accuracy"}
    assert set(intervals[0]["training"]) == set(intervals[0]["validation"]) == names
    for one in intervals:
        for measured in (one["training"], one["validation"]):
            perplexity = np.exp(measured["masked_loss"])
            assert measured["perplexity"] == pytest.approx(perplexity, rel=1e-4)
    final = finished.metrics["final"]["validation"]
    assert final == pytest.approx(intervals[-1]["validation"], abs=1e-4)
    report = json.loads((finished.directory / "report.json").read_text())
    assert report["warnings"] == []
    assert report["tokens_per_step"] == 80 and report["text"]["train"]["files"] == 2
    text = (finished.directory / "log.txt").read_text()
    assert "Warning" not in text
    for words in ("train: 2 files", "step 2/5: ", "validation masked_accuracy", "finished in"):
        assert words in text


def cut_off_behind(batches, config, monkeypatch):
    """A run whose process ends within a batch, and saves nothing more."""
    seen = []

    def count(self, batch, logs=None):
        seen.append(batch)
        if len(seen) > batches:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(IntervalRecord, "on_train_batch_begin", count)
        train(config)


@pytest.mark.slow
def test_a_run_that_was_cut_off_before_its_first_state_begins_anew(
    finished, tiny_corpus, tmp_path, monkeypatch, capsys, lean
):
    config = tiny_corpus.config(tmp_path / "stopped")
    cut_off_behind(1, config, monkeypatch)
    assert (tmp_path / "stopped.incomplete").is_dir()
    run = load_run(train(config))
    assert "goes on after" not in capsys.readouterr().err
    assert_same(run, finished)


def stopped_in_step(step, config, monkeypatch):
    """A run that got SIGTERM in a step, after which it stopped."""
    seen = []

    def ask(self, batch, logs=None):
        seen.append(batch)
        if len(seen) == step:
            signal.raise_signal(signal.SIGTERM)

    message = f"after step {step}"
    with monkeypatch.context() as patched, pytest.raises(TrainingStopped, match=message):
        patched.setattr(IntervalRecord, "on_train_batch_begin", ask)
        train(config)


@pytest.mark.slow
def test_a_run_that_was_stopped_ends_with_the_same_weights(
    finished, tiny_corpus, tmp_path, monkeypatch, capsys, lean
):
    """Asked to in the third of five steps, of which every second has a state; cut off in the last.
    """
    config = tiny_corpus.config(tmp_path / "run")
    stopped_in_step(3, config, monkeypatch)
    assert (tmp_path / "run.incomplete").is_dir()
    with pytest.raises(ValueError, match=r"Received: seed=2 \(it had 1\). Set allow_config_ch"):
        train(config.with_values(seed=2))
    cut_off_behind(1, config, monkeypatch)
    run = load_run(train(config))
    told = capsys.readouterr().err
    assert "goes on after step 3" in told and "goes on after step 4" in told
    assert_same(run, finished)


@pytest.mark.slow
def test_what_was_measured_on_held_out_text_is_no_training(
    finished, tiny_corpus, tmp_path, monkeypatch, lean
):
    """A state of the end of an interval, where another configuration is within one."""
    config = tiny_corpus.config(tmp_path / "run")
    stopped_in_step(4, config, monkeypatch)
    run = load_run(train(config.with_values(save_every=3, allow_config_change=True)))
    last, expected = (one.metrics["intervals"][-1] for one in (run, finished))
    assert last["step"] == expected["step"] == 5
    assert last["training"] == expected["training"]


@pytest.mark.slow
def test_steps_that_are_one_call(
    finished, tiny_corpus, tmp_path, monkeypatch, capsys, bar_steps, lean
):
    """Two steps a call, and the fifth alone; SIGTERM comes in the first call of two."""
    values = {"steps_per_execution": 2, "save_every": 4}
    values |= {"validation": None, "validation_steps": None}
    whole = load_run(train(tiny_corpus.config(tmp_path / "whole", **values)))
    assert [one["step"] for one in whole.metrics["intervals"]] == [4, 5]
    last, expected = (run.metrics["intervals"][-1]["training"] for run in (whole, finished))
    assert last == pytest.approx(expected, rel=1e-3)  # the fifth of single steps

    def ask(self, batch, logs=None):
        signal.raise_signal(signal.SIGTERM)

    config = tiny_corpus.config(tmp_path / "run", **values)
    with monkeypatch.context() as patched, pytest.raises(TrainingStopped, match="after step 2"):
        patched.setattr(IntervalRecord, "on_train_batch_begin", ask)
        train(config)
    bar_steps.clear()
    run = load_run(train(config))
    assert bar_steps == [("training", 4, 5), ("training", 5, 5)]
    assert "goes on after step 2" in capsys.readouterr().err
    assert_same(run, whole)


def test_another_order_begins_the_next_pass(tiny_corpus, tmp_path, monkeypatch, capsys, lean):
    """Also where the first process that found it came to no state of its own."""
    places = []

    def ask(self, batch, logs=None):
        signal.raise_signal(signal.SIGTERM)

    def begin(config, source, tokenizer, place):
        places.append(place)
        raise RuntimeError("power")

    config = tiny_corpus.config(tmp_path / "run", batch_size=2)
    with monkeypatch.context() as patched, pytest.raises(TrainingStopped, match="after step 1"):
        patched.setattr(IntervalRecord, "on_train_batch_begin", ask)
        train(config)
    monkeypatch.setattr(pretraining_run.sources, "train_batches", begin)
    for values in ({}, {"seed": 2, "allow_config_change": True}, {"seed": 2}):
        with pytest.raises(RuntimeError, match="power"):
            train(config.with_values(**values))
    within, *anew = places
    assert (within["epoch"], within["example"]) == (0, 2)
    assert anew == [{"epoch": 1, "window": 0, "example": 0}] * 2
    assert "the batches come in another order" in capsys.readouterr().err


def test_another_number_of_workers_is_another_order_of_the_same_text(
    tiny_corpus, tmp_path, monkeypatch
):
    config = tiny_corpus.config(tmp_path / "run", batch_size=6)
    orders, fingerprints = set(), set()
    for workers in (1, 2, 3):
        addresses = tuple(f"10.0.0.{number}:2222" for number in range(workers))
        monkeypatch.setenv("TF_CONFIG", worker_config(addresses, 0))
        alone = {"strategy": "one" if workers == 1 else "multi-worker"}
        text = read_text(config.with_values(**alone))
        fingerprints.add(text.train.fingerprint)
        orders.add(pretraining_run._order(config.with_values(**alone), text))
    assert len(orders) == 3 and len(fingerprints) == 1


def test_an_order_is_the_same_however_the_folder_of_the_encoder_is_spelled(tiny_corpus, tmp_path):
    sizes = ("vocabulary", "num_layers", "hidden_dim", "num_heads", "intermediate_dim", "positions")
    own = dict.fromkeys(sizes)  # those of the encoder
    text = read_text(tiny_corpus.config(tmp_path / "run"))

    def order(encoder):
        config = tiny_corpus.config(tmp_path / "run", encoder=encoder, **own)
        return pretraining_run._order(config, text)

    one = order("chain.incomplete/score")
    assert order(str(tmp_path / "chain.incomplete" / "score")) == one
    assert order("chain.incomplete/mood") != one


def test_intervals_are_cut_by_hand():
    assert intervals_from(0, 5, 2) == (0, 2, 2)  # steps 1 to 4
    assert intervals_from(4, 5, 2) == (2, 3, 1)
    assert intervals_from(3, 5, 2) == (1, 2, 1)  # the rest of one that was begun
    assert intervals_from(2, 5, 2) == (1, 2, 2)
    assert intervals_from(0, 3, 9) == (0, 1, 3)


@pytest.mark.slow
def test_going_on_from_an_encoder(tiny_corpus, tmp_path, eagerly):
    encoder = write_encoder(tmp_path, tiny_corpus.vocabulary)
    names = ("num_layers", "hidden_dim", "num_heads", "intermediate_dim", "positions", "vocabulary")
    own = {name: None for name in names}
    config = tiny_corpus.config(
        tmp_path / "run", **own, encoder=str(encoder), objective="mlm", steps=1, whole_words=True
    )
    run = load_run(train(config))
    report = json.loads((run.directory / "report.json").read_text())
    assert "encoder has no cls.predictions, " in report["warnings"][0]
    assert [one["step"] for one in run.metrics["intervals"]] == [1]
    assert "next_sentence_loss" not in run.metrics["final"]["validation"]
    assert load(run.model_directory).encoder.max_sequence_length == 24
    with pytest.raises(FileExistsError, match="`output` must not exist yet"):
        train(config)

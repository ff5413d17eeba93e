import shutil
import signal
from functools import cache, partial

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.models.bert import Bert
from kbert.tasks.classification.model import Classifier
from kbert.training.callbacks import state_saver
from kbert.training.callbacks.state_saver import BadBatch, Saving, StateSaver, fit_from
from kbert.training.runs.stopped_runs import StopSignals, TrainingStopped, stop_signals
from kbert.training.runs.train_state import Position, load_state
from tests.training.eager_steps import eager_steps

TEXTS = [f"the {word} film {end}" for word in ("good", "bad") for end in ("", "was", "it was")]
LABELS = ["up"] * 3 + ["down"] * 3


@cache
def read_once(tiny):
    """The tokenizer of all classifiers, and their packed texts: its graph is traced once."""
    made = {"labels": ["down", "up"], "max_sequence_length": 16}
    model = Classifier.from_pretrained(tiny.encoder, **made)
    return model.tokenizer, made, model.pack(TEXTS)


def classifier(tiny):
    tokenizer, made, _ = read_once(tiny)
    keras.utils.set_random_seed(3)
    model = Classifier(Bert.from_pretrained(tiny.encoder), tokenizer, **made)
    model.compile(optimizer=keras.optimizers.Adam(0.01))
    return model


def dataset(tiny, model, **kwargs):
    _, _, packed = read_once(tiny)
    targets = model.encode_targets(LABELS)
    return model.dataset(packed, targets, **{"batch_size": 2, **kwargs}, shuffle=True, seed=5)


def batches_from(tiny, model, epoch, batch, **kwargs):
    return dataset(tiny, model, first_epoch=epoch, first_batch=batch, **kwargs)


class Stop(keras.callbacks.Callback):
    """Ends the process' work after some steps, as a power cut would."""

    def __init__(self, steps):
        super().__init__()
        self.left = steps

    def on_train_batch_end(self, batch, logs=None):
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def whole(tiny):
    """Three epochs without a stop: the variables at their end, and their metrics."""
    model = classifier(tiny)
    with eager_steps():
        history = model.fit(dataset(tiny, model), epochs=3, verbose=0).history
    return {variable.path: variable.numpy() for variable in model.variables}, history


@pytest.mark.parametrize("steps", [4, 6])
def test_a_training_that_was_stopped_ends_with_the_same_bits(
    steps, whole, tiny, tmp_path, eagerly
):
    each_step = Saving(tmp_path / "states", seconds=0)
    first = classifier(tiny)
    with pytest.raises(KeyboardInterrupt):
        callbacks = [StateSaver(each_step), Stop(steps)]
        first.fit(dataset(tiny, first), epochs=3, verbose=0, callbacks=callbacks)
    second = classifier(tiny)
    at = load_state(tmp_path / "states", second)
    saved = 5 if steps == 6 else steps  # an epoch that is yet to be measured has no state
    assert at.step == saved and 3 * at.epoch + at.batch == saved
    saver = StateSaver(each_step, at)
    rest = partial(batches_from, tiny, second)
    fit_from(second, at, 3, rest, verbose=0, callbacks=[saver])
    for one, other in zip(whole[0].values(), second.variables, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=other.path)
    assert load_state(tmp_path / "states", classifier(tiny)) == Position(9, 3, 0)


@pytest.fixture(scope="module")
def after_one_step(tiny, tmp_path_factory):
    """The states of a training that was stopped behind the first of three batches."""
    saving = Saving(tmp_path_factory.mktemp("one") / "states", every=1)
    first = classifier(tiny)
    with eager_steps(), pytest.raises(KeyboardInterrupt):
        first.fit(dataset(tiny, first), verbose=0, callbacks=[StateSaver(saving), Stop(1)])
    return saving.folder


def first_epoch_from(folder, tiny, model):
    at, history = load_state(folder, model), keras.callbacks.History()
    fit_from(model, at, 1, partial(batches_from, tiny, model), verbose=0, callbacks=[history])
    return history.history


def test_the_metrics_of_an_epoch_are_those_of_all_of_it(whole, after_one_step, tiny, eagerly):
    """The mean over three batches, of which an earlier process did one."""
    expected = {name: values[:1] for name, values in whole[1].items()}
    assert first_epoch_from(after_one_step, tiny, classifier(tiny)) == expected


def test_epochs_of_unlike_numbers_of_batches(tiny, eagerly):
    """Keras would take the first epoch's number for the second."""
    model, sizes = classifier(tiny), [1, 3, 2]

    def batches(epoch, batch):
        return dataset(tiny, model).take(sizes[epoch]).skip(batch)

    fit_from(model, Position(1, 1, 1), 3, batches, batches=sizes, verbose=0)
    assert model.optimizer.iterations == 2 + 2


def in_calls_of_two(tiny):
    model = classifier(tiny)
    model.compile(optimizer=keras.optimizers.Adam(0.01), steps_per_execution=2)
    return model


def several_steps_that_are_one_call(tiny, tmp_path, metrics):
    """Of three batches an epoch a call does two, and another one the third."""
    every_second = Saving(tmp_path / "states", every=2, keep=9)
    whole = in_calls_of_two(tiny)
    expected = whole.fit(
        dataset(tiny, whole), epochs=3, verbose=0, callbacks=[StateSaver(every_second)]
    ).history
    # At the first end of a call behind the steps 2, 4, 6 and 8.
    names = sorted(path.name for path in every_second.folder.iterdir())
    assert names == [f"step-00000000{number}" for number in (2, 5, 6, 8)]
    np.testing.assert_allclose(metrics["loss"], expected["loss"], rtol=1e-3)
    assert whole.optimizer.iterations == 9
    for name in names[2:]:
        shutil.rmtree(every_second.folder / name)
    second, last = in_calls_of_two(tiny), keras.callbacks.History()
    at = load_state(every_second.folder, second)
    assert (at.step, at.epoch, at.batch) == (5, 1, 2)
    rest = partial(batches_from, tiny, second)
    saver = StateSaver(every_second, at)
    fit_from(second, at, 3, rest, verbose=0, callbacks=[last, saver])
    for one, other in zip(whole.variables, second.variables):
        np.testing.assert_array_equal(one, other, err_msg=one.path)
    assert load_state(every_second.folder, classifier(tiny)).step == 8
    assert last.history["loss"] == expected["loss"][1:]


def test_several_steps_that_are_one_call(whole, tiny, tmp_path, eagerly):
    several_steps_that_are_one_call(tiny, tmp_path, whole[1])


@pytest.mark.slow
def test_several_traced_steps_that_are_one_call(tiny, tmp_path):
    single = classifier(tiny)
    metrics = single.fit(dataset(tiny, single), epochs=3, verbose=0).history
    several_steps_that_are_one_call(tiny, tmp_path, metrics)


def test_the_metrics_of_an_epoch_in_calls_are_those_of_all_of_it(
    whole, after_one_step, tiny, eagerly
):
    """A state behind the first batch; the other two are one call."""
    found = first_epoch_from(after_one_step, tiny, in_calls_of_two(tiny))
    assert found.keys() == whole[1].keys()
    for name, values in found.items():
        assert values == pytest.approx(whole[1][name][:1], rel=1e-4)


def test_a_signal_stops_at_the_end_of_a_call(tiny, tmp_path, eagerly):
    model = in_calls_of_two(tiny)
    with stop_signals() as stop, stop.deferred():
        saver = StateSaver(Saving(tmp_path / "states"), stop=stop)
        with pytest.raises(TrainingStopped, match="stopped by SIGTERM after step 2. The "):
            model.fit(dataset(tiny, model), epochs=3, verbose=0, callbacks=[Signal(0), saver])
        stop.received = None
    assert load_state(tmp_path / "states", model) == Position(2, 0, 2)


def test_when_states_are_saved(tiny, tmp_path, eagerly):
    model = classifier(tiny)
    told = {"best_value": 0.5}
    saver = StateSaver(Saving(tmp_path, every=2, keep=9), told=lambda: told)
    model.fit(dataset(tiny, model), epochs=2, verbose=0, callbacks=[saver])
    # Of three batches each; that behind the sixth is saved when its epoch has been measured.
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"step-00000000{n}" for n in (2, 4, 6)]
    assert load_state(tmp_path, model) == Position(6, 2, 0, told=told)


class Signal(keras.callbacks.Callback):
    """Sends SIGTERM in the middle of a step."""

    def __init__(self, step):
        super().__init__()
        self.step = step

    def on_train_batch_begin(self, batch, logs=None):
        if self.model.optimizer.iterations == self.step:
            signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize("step, at", [(0, Position(1, 0, 1)), (2, Position(3, 1, 0))])
def test_a_signal_saves_what_runs_and_stops(step, at, tiny, tmp_path, eagerly):
    model = classifier(tiny)
    with stop_signals() as stop, stop.deferred():
        saver = StateSaver(Saving(tmp_path / "states"), stop=stop)
        with pytest.raises(TrainingStopped, match=f"stopped by SIGTERM after step {at.step}. The "):
            model.fit(dataset(tiny, model), epochs=3, verbose=0, callbacks=[Signal(step), saver])
        stop.received = None
    assert load_state(tmp_path / "states", model) == at


def test_a_loss_that_is_no_number_is_told_with_its_batch(tiny, tmp_path, eagerly):
    """The second batch of three has a weight of infinity."""
    model = classifier(tiny)
    packed, targets = read_once(tiny)[2], model.encode_targets(["up"] * 6)

    def weighed(epoch, batch):
        batches = model.dataset(packed, targets, sample_weights=np.ones(6), batch_size=2)
        return batches.enumerate().map(spoil).skip(batch)

    def spoil(number, batch):
        inputs, labels, weights = batch
        return inputs, labels, tf.where(number == 1, np.inf, tf.cast(weights, tf.float32))

    bad_batch = BadBatch(tmp_path, lambda at: weighed(at.epoch, at.batch))
    saver = StateSaver(Saving(tmp_path / "states", every=1), bad_batch=bad_batch)
    with pytest.raises(FloatingPointError, match="Received: (inf|nan) at step 2. Try a lower"):
        fit_from(model, Position(), 1, weighed, callbacks=[saver], verbose=0)
    with np.load(tmp_path / "bad-batch-step-2.npz") as kept:
        assert np.isinf(kept["weights"]).all() and kept["token_ids"].shape[0] == 2
    assert load_state(tmp_path / "states", classifier(tiny)).step == 1


def test_the_batches_of_a_call_whose_loss_is_no_number(tiny, tmp_path):
    """The third batch of three, which is a call of its own; then one of the first two."""
    seen = []

    def batches(at):
        seen.append((at.step, at.batch))
        return iter([{"token_ids": np.zeros(2)}] * 9)

    model = in_calls_of_two(tiny)
    saver = StateSaver(Saving(tmp_path / "states"), bad_batch=BadBatch(tmp_path, batches))
    saver.set_model(model)
    saver.set_params({"steps": 3})
    saver.on_train_batch_end(1, {"loss": 0.5})
    with pytest.raises(FloatingPointError, match="nan at step 3. Try .* Its batch is in"):
        saver.on_train_batch_end(3, {"loss": np.nan})
    saver = StateSaver(Saving(tmp_path / "states"), bad_batch=BadBatch(tmp_path, batches))
    saver.set_params({"steps": 3})
    with pytest.raises(FloatingPointError, match="nan at one of the steps 1 to 2. Try"):
        saver.on_train_batch_end(1, {"loss": np.nan})
    assert seen == [(2, 2), (0, 0)]


class StopTraining(keras.callbacks.Callback):
    """Ends the training after an epoch, as early stopping does."""

    def on_epoch_end(self, epoch, logs=None):
        self.model.stop_training = True


def test_a_training_that_ends_early_in_its_first_rest_has_ended(tiny, eagerly):
    model = classifier(tiny)
    rest = partial(batches_from, tiny, model)
    fit_from(model, Position(1, 0, 1), 3, rest, verbose=0, callbacks=[StopTraining()])
    assert model.optimizer.iterations == 2  # of three batches an epoch, one was done before


@pytest.mark.parametrize("together", [True, False])
def test_a_signal_of_another_worker_stops_those_that_train_together(
    together, tiny, tmp_path, monkeypatch
):
    met = []
    monkeypatch.setattr(state_saver, "any_signal", lambda own: "SIGTERM")
    monkeypatch.setattr(state_saver, "barrier", lambda: met.append(1))
    saving, stop = Saving(tmp_path / "states"), StopSignals("Go on")
    saver = StateSaver(saving, stop=stop, together=together)
    saver.set_model(classifier(tiny))
    saver.model.optimizer.build(saver.model.trainable_variables)
    if together:
        with pytest.raises(TrainingStopped, match="stopped by SIGTERM after step 1. Go on"):
            saver.on_train_batch_end(0)
    else:
        saver.on_train_batch_end(0)
    assert met == [1] * together and saving.folder.exists() == together

import json
from functools import partial

import keras
import numpy as np
import pytest

from kbert.pipelines.classification import Classifier
from kbert.training.train_state import Position, StateSaver, fit_from, load_state, save_state

TEXTS = [f"the {word} film {end}" for word in ("good", "bad") for end in ("", "was", "it was")]
LABELS = ["up"] * 3 + ["down"] * 3


def classifier(tiny):
    keras.utils.set_random_seed(3)
    model = Classifier.from_pretrained(tiny.encoder, labels=["down", "up"], max_sequence_length=16)
    model.compile(optimizer=keras.optimizers.Adam(0.01))
    return model


def dataset(model, **kwargs):
    packed = model.pack(TEXTS)
    targets = model.encode_targets(LABELS)
    return model.dataset(packed, targets, batch_size=2, shuffle=True, seed=5, **kwargs)


def batches_from(model, epoch, batch):
    return dataset(model, first_epoch=epoch, first_batch=batch)


class Stop(keras.callbacks.Callback):
    """Ends the process' work after some steps, as a power cut would."""

    def __init__(self, steps):
        super().__init__()
        self.left = steps

    def on_train_batch_end(self, batch, logs=None):
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


@pytest.mark.parametrize("steps", [1, 4, 6])
def test_a_training_that_was_stopped_ends_with_the_same_bits(steps, tiny, tmp_path):
    whole = classifier(tiny)
    whole.fit(dataset(whole), epochs=3, verbose=0)
    first = classifier(tiny)
    with pytest.raises(KeyboardInterrupt):
        callbacks = [StateSaver(tmp_path / "states", seconds=0), Stop(steps)]
        first.fit(dataset(first), epochs=3, verbose=0, callbacks=callbacks)
    second = classifier(tiny)
    at = load_state(tmp_path / "states", second)
    assert at.step == steps and 3 * at.epoch + at.batch == steps
    saver = StateSaver(tmp_path / "states", at, seconds=0)
    rest = partial(batches_from, second)
    fit_from(second, at, 3, rest, verbose=0, callbacks=[saver])
    for one, other in zip(whole.variables, second.variables):
        np.testing.assert_array_equal(one, other, err_msg=one.path)
    assert load_state(tmp_path / "states", classifier(tiny)) == Position(9, 3, 0)


def test_a_damaged_state_is_left_for_the_one_before(tiny, tmp_path, caplog):
    model = classifier(tiny)
    assert load_state(tmp_path, model) is None
    model.fit(dataset(model), verbose=0)
    save_state(tmp_path, model, Position(1, 0, 1))
    newest = save_state(tmp_path, model, Position(2, 0, 2))
    file = newest / "variables.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    assert load_state(tmp_path, model) == Position(1, 0, 1)
    assert "step-000000002 is damaged and not used" in caplog.text


def test_only_the_newest_states_stay(tiny, tmp_path):
    model = classifier(tiny)
    model.fit(dataset(model), verbose=0)
    for step in range(1, 5):
        save_state(tmp_path, model, Position(step, 0, step))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step-000000003", "step-000000004"]
    about = json.loads((tmp_path / "step-000000004" / "state.json").read_text())
    assert (about["step"], about["epoch"], about["batch"]) == (4, 0, 4)


def test_a_state_of_another_model_is_refused(tiny, tmp_path):
    model = classifier(tiny)
    model.fit(dataset(model), verbose=0)
    save_state(tmp_path, model, Position(1, 0, 1))
    model.compile(optimizer=keras.optimizers.SGD(0.01))
    with pytest.raises(ValueError, match="must be of the same model. Received: "):
        load_state(tmp_path, model)


class StopTraining(keras.callbacks.Callback):
    """Ends the training after an epoch, as early stopping does."""

    def on_epoch_end(self, epoch, logs=None):
        self.model.stop_training = True


def test_a_training_that_ends_early_in_its_first_rest_has_ended(tiny):
    model = classifier(tiny)
    rest = partial(batches_from, model)
    fit_from(model, Position(1, 0, 1), 3, rest, verbose=0, callbacks=[StopTraining()])
    assert model.optimizer.iterations == 2  # of three batches an epoch, one was done before

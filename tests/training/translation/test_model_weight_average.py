"""The mean of the last weights."""

import keras
import numpy as np
import pytest

from kbert.training.translation.model import (
    WeightsKeeper,
    average_weights,
    kept_weights,
    remove_weights_after,
)


def made():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, name="dense")])
    model.compile("sgd", "mse")
    return model


class Weights(keras.callbacks.Callback):
    """What the kernel was after each epoch."""

    def __init__(self):
        super().__init__()
        self.kernels = []

    def on_epoch_end(self, epoch, logs=None):
        self.kernels.append(np.asarray(self.model.layers[0].kernel))


def test_the_mean_of_the_last_epochs(tmp_path):
    keras.utils.set_random_seed(1)
    model, seen = made(), Weights()
    x = np.random.default_rng(0).normal(size=(8, 2)).astype("float32")
    callbacks = [seen, WeightsKeeper(tmp_path / "kept", last=3)]
    model.fit(x, x.sum(axis=1), epochs=5, callbacks=callbacks, verbose=0)
    epochs = kept_weights(tmp_path / "kept")
    assert [epoch.name for epoch in epochs] == ["epoch-00003", "epoch-00004", "epoch-00005"]
    average_weights(model, epochs)
    expected = np.mean(seen.kernels[2:], axis=0)
    np.testing.assert_allclose(np.asarray(model.layers[0].kernel), expected, atol=1e-7)
    assert np.abs(expected - seen.kernels[-1]).max() > 1e-6


def test_an_epoch_that_is_repeated_takes_the_place_of_the_first(tmp_path):
    keeper = WeightsKeeper(tmp_path, last=2)
    keeper.set_model(made())
    for value in (1.0, 2.0):
        keeper.model.layers[0].kernel.assign([[value], [value]])
        keeper.on_epoch_end(0)
    assert len(kept_weights(tmp_path)) == 1
    keeper.model.layers[0].kernel.assign([[0.0], [0.0]])
    average_weights(keeper.model, kept_weights(tmp_path))
    assert np.asarray(keeper.model.layers[0].kernel).tolist() == [[2.0], [2.0]]


def test_what_no_state_knows_goes(tmp_path):
    keeper = WeightsKeeper(tmp_path, last=3)
    keeper.set_model(made())
    for epoch in range(3):
        keeper.on_epoch_end(epoch)
    remove_weights_after(tmp_path, 2)
    assert [epoch.name for epoch in kept_weights(tmp_path)] == ["epoch-00001", "epoch-00002"]
    remove_weights_after(tmp_path / "nothing", 0)


def test_what_cannot_be_averaged_is_refused(tmp_path):
    with pytest.raises(ValueError, match="`last` must be at least 1. Received: last=0"):
        WeightsKeeper(tmp_path, last=0)
    with pytest.raises(ValueError, match="`epochs` must be at least one"):
        average_weights(made(), kept_weights(tmp_path / "nothing"))
    keeper = WeightsKeeper(tmp_path, last=1)
    keeper.set_model(made())
    keeper.on_epoch_end(0)
    other = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, name="dense")])
    with pytest.raises(ValueError, match="must be of this model. Received: .*epoch-00001"):
        average_weights(other, kept_weights(tmp_path))

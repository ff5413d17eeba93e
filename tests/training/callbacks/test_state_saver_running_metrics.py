import keras
import numpy as np
import pytest

from kbert.training.callbacks.state_saver import RunningMetrics


def test_sums_are_added_once():
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, kernel_initializer="zeros")])
    model.compile(keras.optimizers.SGD(0.0), "mse", metrics=["mae"], run_eagerly=True)
    ones = np.ones((2, 1), "float32")
    # Two rows of a loss of 9 and an absolute error of 3, done before.
    running = RunningMetrics([np.float32(x) for x in (18, 2, 6, 2)])
    history = model.fit(ones, ones, epochs=2, verbose=0, callbacks=[running]).history
    # The first epoch: these and two of 1; the second: two of 1.
    assert history["loss"] == [5.0, 1.0] and history["mae"] == [2.0, 1.0]


def test_sums_come_first_where_metrics_have_their_variables():
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, kernel_initializer="zeros")])
    model.compile(keras.optimizers.SGD(0.0), "mse", run_eagerly=True)
    seen = []

    class See(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            seen.append([float(v.numpy()) for v in model.metrics_variables])

    running = RunningMetrics([np.float32(x) for x in (18, 2)])
    ones = np.ones((4, 1), "float32")
    history = model.fit(ones, ones, batch_size=2, verbose=0, callbacks=[running, See()]).history
    # Two rows of a loss of 9, and then twice two of 1.
    assert seen == [[18.0, 2.0], [20.0, 4.0]] and history["loss"] == [pytest.approx(22 / 6)]

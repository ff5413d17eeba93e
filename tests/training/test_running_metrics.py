import keras
import numpy as np

from kbert.training.running_metrics import RunningMetrics


def test_sums_are_added_once():
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, kernel_initializer="zeros")])
    model.compile(keras.optimizers.SGD(0.0), "mse", metrics=["mae"], run_eagerly=True)
    ones = np.ones((2, 1), "float32")
    # Two rows of a loss of 9 and an absolute error of 3, done before.
    running = RunningMetrics([np.float32(x) for x in (18, 2, 6, 2)])
    history = model.fit(ones, ones, epochs=2, verbose=0, callbacks=[running]).history
    # The first epoch: these and two of 1; the second: two of 1.
    assert history["loss"] == [5.0, 1.0] and history["mae"] == [2.0, 1.0]

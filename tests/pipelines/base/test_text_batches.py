"""Keras' fit and evaluate with a model's own batches, on a model of one weight."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.pipelines.base.text_batches import TextBatches, check_targets


class Lengths(TextBatches):
    """Learns the factor between texts' lengths and their targets."""

    def __init__(self):
        super().__init__()
        self.scale = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
        self.cuts = []
        self.compile("sgd", "mse")

    def call(self, x):
        return self.scale(x)

    def text_batches(self, x, y=None, **cut):
        if not (isinstance(x, list) and isinstance(x[0], str)):
            return None
        check_targets(len(x), y)
        self.cuts.append(cut)
        numbers = np.array([[len(text)] for text in x], "float32")
        return tf.data.Dataset.from_tensor_slices((numbers, np.array(y, "float32"))).batch(2)


TEXTS, Y = ["a", "bb", "c"], [2.0, 4.0, 2.0]
READY = np.array([[1.0], [2.0], [1.0]], "float32"), np.array(Y, "float32")


def test_texts_become_the_model_s_own_batches():
    model = Lengths()
    # By hand: every prediction is 0, so that the loss is (4 + 16 + 4) / 3.
    assert model.evaluate(TEXTS, Y, verbose=0) == pytest.approx(8.0)
    held_out = {"validation_data": (TEXTS, Y)}
    model.fit_texts(TEXTS, Y, None, cut={"size": 1}, shuffle=True, epochs=3, verbose=0, **held_out)
    assert model.cuts == [{}, {}, {"size": 1}]
    assert model.optimizer.iterations == 3 * 2


def test_a_batch_size_is_that_of_texts_too():
    model = Lengths()
    assert model.evaluate(TEXTS, Y, 5, verbose=0) == pytest.approx(8.0)
    model.is_cut_by_rows = False
    assert model.evaluate(TEXTS, Y, 5, verbose=0) == pytest.approx(8.0)
    assert model.cuts == [{"batch_size": 5}, {}]


def test_what_is_no_text_passes_through():
    model = Lengths()
    options = {"cut": {}, "shuffle": False, "verbose": 0}
    model.fit_texts(*READY, 1, validation_data=(*READY, np.ones(3)), **options)
    assert model.optimizer.iterations == 3
    dataset = tf.data.Dataset.from_tensor_slices(READY).batch(3)
    model.fit_texts(dataset, None, None, validation_data=dataset, **options)
    assert model.optimizer.iterations == 4 and model.cuts == []
    by_arrays = model.evaluate(*READY, verbose=0)
    assert by_arrays == pytest.approx(model.evaluate(dataset, verbose=0))


def test_what_is_wrong_with_texts_is_told():
    options = {"cut": {}, "shuffle": False, "validation_data": (TEXTS, Y, [1.0] * 3)}
    with pytest.raises(ValueError, match=r"must be \(x, y\)\. Received: 3 entries"):
        Lengths().fit_texts(TEXTS, Y, None, **options)
    del options["validation_data"]
    with pytest.raises(ValueError, match="`sample_weight` must be None .*Received: 3 weights"):
        Lengths().fit_texts(
            TEXTS, Y, None, validation_data=None, sample_weight=[1.0] * 3, **options
        )
    with pytest.raises(ValueError, match="`sample_weight` must be None .*Received: 3 weights"):
        Lengths().evaluate(TEXTS, Y, sample_weight=[1.0] * 3)
    for count, y, message in (
        (2, None, "`y` must be given with texts"),
        (2, [1], "`y` must have one entry a text. Received: 1 for 2 texts"),
        (0, [], "`x` must hold at least one text"),
    ):
        with pytest.raises(ValueError, match=message):
            check_targets(count, y)


def test_one_batch_of_texts_and_of_something_else():
    model = Lengths()
    numbers, targets = model.one_batch(iter(TEXTS[:2]), Y[:2], None)
    assert numbers.numpy().tolist() == [[1.0], [2.0]] and targets.numpy().tolist() == [2.0, 4.0]
    assert model.one_batch(*READY, None) == (*READY, None)
    with pytest.raises(ValueError, match="`sample_weight` must be None"):
        model.one_batch(TEXTS, Y, [1.0] * 3)

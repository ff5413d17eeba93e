"""Keras' fit and evaluate with a model's own batches, on a model of one weight."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.pipelines import batching as batching_module
from kbert.pipelines.batching import Batching, check_targets
from kbert.pipelines.task_model import TaskModel


class LengthBatching(Batching):
    """Texts as their lengths; `cuts` are the options of all batches that were made."""

    def __init__(self, model):
        super().__init__(model)
        self.cuts = []

    def text_batches(self, x, y=None, **cut):
        if not (isinstance(x, list) and isinstance(x[0], str)):
            return None
        check_targets(len(x), y)
        self.cuts.append(cut)
        numbers = np.array([[len(text)] for text in x], "float32")
        return tf.data.Dataset.from_tensor_slices((numbers, np.array(y, "float32"))).batch(2)


class Lengths(TaskModel):
    """Learns the factor between texts' lengths and their targets."""

    batching_type = LengthBatching

    def __init__(self):
        super().__init__()
        self.scale = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
        self.scale.build((None, 1))
        self.built = True
        self.compile("sgd", "mse")

    def call(self, x):
        return self.scale(x)


TEXTS, Y = ["a", "bb", "c"], [2.0, 4.0, 2.0]
READY = np.array([[1.0], [2.0], [1.0]], "float32"), np.array(Y, "float32")


def test_texts_become_the_model_s_own_batches():
    model = Lengths()
    # By hand: every prediction is 0, so that the loss is (4 + 16 + 4) / 3.
    assert model.evaluate(TEXTS, Y, verbose=0) == pytest.approx(8.0)
    held_out = {"validation_data": (TEXTS, Y)}
    model.fit(TEXTS, Y, 1, epochs=3, verbose=0, seed=5, **held_out)
    cut = {"batch_size": 1, "batch_tokens": None, "shuffle": True, "seed": 5}
    assert model.batching.cuts == [{}, {}, cut]
    assert model.optimizer.iterations == 3 * 2


def test_a_batch_size_is_that_of_texts_too():
    model = Lengths()
    assert model.evaluate(TEXTS, Y, 5, verbose=0) == pytest.approx(8.0)
    model.batching.is_cut_by_rows = False
    assert model.evaluate(TEXTS, Y, 5, verbose=0) == pytest.approx(8.0)
    assert model.batching.cuts == [{"batch_size": 5}, {}]


def test_what_is_no_text_passes_through():
    model = Lengths()
    options = {"shuffle": False, "verbose": 0}
    model.fit(*READY, 1, validation_data=(*READY, np.ones(3)), **options)
    assert model.optimizer.iterations == 3
    dataset = tf.data.Dataset.from_tensor_slices(READY).batch(3)
    model.fit(dataset, validation_data=dataset, **options)
    assert model.optimizer.iterations == 4 and model.batching.cuts == []
    by_arrays = model.evaluate(*READY, verbose=0)
    assert by_arrays == pytest.approx(model.evaluate(dataset, verbose=0))


def test_what_is_wrong_with_texts_is_told():
    with pytest.raises(ValueError, match=r"must be \(x, y\)\. Received: 3 entries"):
        Lengths().fit(TEXTS, Y, validation_data=(TEXTS, Y, [1.0] * 3))
    with pytest.raises(ValueError, match="`sample_weight` must be None .*Received: 3 weights"):
        Lengths().fit(TEXTS, Y, sample_weight=[1.0] * 3)
    with pytest.raises(ValueError, match="`sample_weight` must be None .*Received: 3 weights"):
        Lengths().evaluate(TEXTS, Y, sample_weight=[1.0] * 3)
    with pytest.raises(ValueError, match="left out for texts of the Lengths: .* Received: .*=0.5"):
        Lengths().fit(TEXTS, Y, validation_split=0.5)
    model = Lengths()
    model.fit(TEXTS, Y, verbose=0, validation_split=0.5, validation_data=(TEXTS, Y))
    assert "val_loss" in model.history.history
    for count, y, message in (
        (2, None, "`y` must be given with texts"),
        (2, [1], "`y` must have one entry a text. Received: 1 for 2 texts"),
        (0, [], "`x` must hold at least one text"),
    ):
        with pytest.raises(ValueError, match=message):
            check_targets(count, y)


def test_one_batch_of_texts_and_of_something_else():
    model = Lengths()
    numbers, targets = model.batching.one_batch(iter(TEXTS[:2]), Y[:2], None)
    assert numbers.numpy().tolist() == [[1.0], [2.0]] and targets.numpy().tolist() == [2.0, 4.0]
    assert model.batching.one_batch(*READY, None) == (*READY, None)
    with pytest.raises(ValueError, match="`sample_weight` must be None"):
        model.batching.one_batch(TEXTS, Y, [1.0] * 3)


def test_states_are_those_of_the_weights_and_the_folder(monkeypatch):
    """The states of the same examples are read again when weights or folder are others."""
    made = []
    prints = SimpleNamespace(fingerprint="a")
    monkeypatch.setattr(batching_module, "frozen_encoder", lambda encoder: prints)
    monkeypatch.setattr(
        batching_module, "frozen_states", lambda *given: (made.append(given) or len(made), None)
    )
    model = SimpleNamespace(encoder=SimpleNamespace(feature_cache="one"))
    batching, packed = Batching(model), ["a text"]
    assert [batching.known_states(packed)["states"] for _ in range(2)] == [1, 1]
    prints.fingerprint = "b"
    assert batching.known_states(packed)["states"] == 2
    model.encoder.feature_cache = "two"
    assert batching.known_states(packed)["states"] == 3
    model.encoder.feature_cache = None
    assert batching.known_states(packed) == {}

"""Weights as arrays by name, and back."""

import keras
import numpy as np
import pytest

from kbert.models.weights import assign_arrays, encoder_arrays, trainable_but, weight_name
from tests.small_bert import ARRAYS, small_bert


def test_all_weights_and_nothing_else():
    model = small_bert(dropout=0.5)  # dropout has a state, which is no weight of the encoder
    arrays = encoder_arrays(model)
    assert sorted(arrays) == sorted(ARRAYS)
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, ARRAYS[name].astype("float32"))


def test_names_do_not_depend_on_the_name_of_the_model():
    model = small_bert(name="pooler")
    assert sorted(encoder_arrays(model)) == sorted(ARRAYS)
    assert weight_name(model, model.pooler.bias) == "pooler/bias"


def test_types():
    arrays = encoder_arrays(small_bert(dtype="bfloat16"))
    assert {array.dtype.name for array in arrays.values()} == {"bfloat16"}
    assert encoder_arrays(small_bert(dtype="mixed_bfloat16"))["pooler/bias"].dtype == "float32"


def test_the_pooler_may_be_absent():
    model = small_bert()
    before = np.asarray(model.pooler.kernel)
    rest = {name: array * 2 for name, array in ARRAYS.items() if not name.startswith("pooler/")}
    assign_arrays(model, rest)
    np.testing.assert_array_equal(model.pooler.kernel, before)
    gamma = np.asarray(model.embeddings.layer_norm.gamma)
    np.testing.assert_array_equal(gamma, rest["embeddings/layer_norm/gamma"].astype("float32"))


def test_every_wrong_array_is_named_and_nothing_is_assigned():
    model = small_bert()
    wrong = {
        **{name: array + 1 for name, array in ARRAYS.items()},
        "pooler/extra": np.zeros(3),
        "pooler/bias": np.zeros(11),
    }
    del wrong["embeddings/layer_norm/beta"]
    message = (
        r"`arrays` must fit the model. Missing: \['embeddings/layer_norm/beta'\]; left over: "
        r"\['pooler/extra'\]; wrong shapes: \['pooler/bias \(expected \(12,\), found \(11,\)\)'\]"
    )
    with pytest.raises(ValueError, match=message):
        assign_arrays(model, wrong)
    for name, array in encoder_arrays(model).items():
        np.testing.assert_array_equal(array, ARRAYS[name].astype("float32"))


def test_parts_with_layers_of_the_same_name():
    def part(name, width):
        entered = keras.Input((width,))
        return keras.Model(entered, keras.layers.Dense(3, name="dense")(entered), name=name)

    entered = keras.Input((4,))
    model = keras.Model(entered, part("two", 3)(part("one", 4)(entered)), name="whole")
    arrays = encoder_arrays(model)
    assert [array.shape for array in arrays.values()] == [(4, 3), (3,), (3, 3), (3,)]
    changed = {name: array + 1.0 for name, array in arrays.items()}
    assign_arrays(model, changed)
    for variable, array in zip(model.weights, changed.values(), strict=True):
        np.testing.assert_array_equal(variable, array)


def test_parts_may_stay_frozen_when_a_model_is_set_trainable():
    class Reader(keras.Model):
        """A frozen part below one that learns."""

        def __init__(self):
            super().__init__()
            self.frozen, self.read = keras.layers.Dense(2), keras.layers.Dense(3)

        trainable = trainable_but(
            lambda model, value: setattr(model.frozen, "trainable", False), "The reader alone."
        )

    model = Reader()
    assert Reader.trainable.__doc__ == "The reader alone."
    for value in (False, True):
        model.trainable = value
        found = (model.trainable, model.frozen.trainable, model.read.trainable)
        assert found == (value, False, value)

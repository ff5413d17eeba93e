"""Tokens predicted from states: the Keras ritual, and numbers of the reference."""

import numpy as np
import pytest
import tensorflow as tf

from kbert.layers.masked_language_head import MaskedLanguageHead
from tests import numpy_reference as reference
from tests.check_layer import assign_weights, check_layer

SHAPES = {
    "transform/kernel": (4, 4),
    "transform/bias": (4,),
    "layer_norm/gamma": (4,),
    "layer_norm/beta": (4,),
    "output/bias": (7,),
}
ARRAYS = reference.random_arrays(SHAPES, seed=2)
DRAW = np.random.default_rng(3)
STATES = DRAW.normal(size=(2, 3, 4)).astype("float32")
TABLE = DRAW.normal(size=(7, 4)).astype("float32")


@pytest.mark.parametrize("activation", ["gelu", "gelu_approximate", "relu"])
def test_ritual_and_numbers(activation):
    init = {"vocabulary_size": 7, "activation": activation, "epsilon": 1e-6}
    layer = check_layer(
        MaskedLanguageHead,
        init,
        (STATES, TABLE),
        (2, 3, 7),
        SHAPES,
        output_dtype="float32",
        dynamic_batch=False,  # a table has no batch
    )
    assign_weights(layer, ARRAYS)
    expected = reference.masked_token_logits(STATES, ARRAYS, TABLE, activation, 1e-6)
    for training in (False, True):
        np.testing.assert_allclose(layer(STATES, TABLE, training=training), expected, atol=2e-5)


def test_rows_of_any_rank_and_number():
    layer = MaskedLanguageHead(7)
    layer.build((None, 4))
    assign_weights(layer, ARRAYS)
    flat = layer(STATES.reshape(6, 4), TABLE)
    np.testing.assert_allclose(flat, np.reshape(layer(STATES, TABLE), (6, 7)), atol=1e-6)
    specs = [tf.TensorSpec((None, None, 4)), tf.TensorSpec((7, 4))]
    graph = tf.function(layer, input_signature=specs)
    np.testing.assert_allclose(graph(STATES, TABLE), layer(STATES, TABLE), atol=1e-6)
    assert graph(STATES[:0], TABLE).shape == (0, 3, 7)


def test_double_precision_stays():
    # TensorFlow's exact GELU divides by a root of 2 in float32, whatever the type.
    layer = MaskedLanguageHead(7, "tanh", dtype="float64")
    layer.build((None, 4))
    assign_weights(layer, ARRAYS)
    logits = layer(STATES.astype("float64"), TABLE.astype("float64"))
    assert logits.dtype == "float64"
    expected = reference.masked_token_logits(STATES, ARRAYS, TABLE, "tanh")
    np.testing.assert_allclose(logits, expected, atol=1e-12)


def test_a_table_narrower_than_the_states():
    """As ALBERT's: the transform maps from one width to the other."""
    shapes = {**SHAPES, "transform/kernel": (4, 3)}
    shapes = {name: (3,) if shape == (4,) else shape for name, shape in shapes.items()}
    arrays, table = reference.random_arrays(shapes, seed=5), TABLE[:, :3]
    layer = check_layer(
        MaskedLanguageHead,
        {"vocabulary_size": 7},
        (STATES, table),
        (2, 3, 7),
        shapes,
        output_dtype="float32",
        dynamic_batch=False,
    )
    assign_weights(layer, arrays)
    expected = reference.masked_token_logits(STATES, arrays, table)
    np.testing.assert_allclose(layer(STATES, table), expected, atol=2e-5)
    with pytest.raises(ValueError, match=r"was built for, 3. Received: shape \(7, 4\)"):
        layer(STATES, TABLE)


def test_an_output_matrix_of_its_own():
    shapes = {k: s for k, s in SHAPES.items() if k != "output/bias"}
    shapes |= {"decoder/kernel": (4, 7), "decoder/bias": (7,)}
    layer = check_layer(
        MaskedLanguageHead,
        {"vocabulary_size": 7, "epsilon": 1e-6, "tied": False},
        (STATES, TABLE),
        (2, 3, 7),
        shapes,
        output_dtype="float32",
        dynamic_batch=False,
    )
    arrays = reference.random_arrays(shapes, seed=4)
    assign_weights(layer, arrays)
    head = {**arrays, "output/bias": arrays["decoder/bias"]}
    own = np.asarray(arrays["decoder/kernel"]).T
    expected = reference.masked_token_logits(STATES, head, own, "gelu", 1e-6)
    np.testing.assert_allclose(layer(STATES, TABLE), expected, atol=2e-5)
    np.testing.assert_array_equal(layer(STATES, TABLE * 2), layer(STATES, TABLE))

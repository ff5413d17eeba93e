"""Vectors of token ids, by the NumPy reference."""

import numpy as np
import pytest

from kbert.tasks.embedding.head import SequenceEmbedding
from tests import numpy_reference as reference
from tests.small_bert import INPUTS, MASK, SEGMENTS, expected_outputs, small_bert
from tests.tasks.check_task import POOLER, check_variables, saved_and_loaded, untrained

ROWS = slice(0, 3)  # the last row is all padding
WEIGHTS = reference.random_arrays({"dense/kernel": (12, 5), "dense/bias": (5,)}, seed=3)


def made_model(**kwargs):
    encoder = small_bert(dropout=0.0, attention_dropout=0.0)
    model = SequenceEmbedding(encoder, name="model", **kwargs)
    if model.dense_layer is not None:
        for variable in model.dense_layer.weights:
            variable.assign(WEIGHTS[f"dense/{variable.name}"])
    return model


def expected_pooled(pooling):
    """One row after the other, over its real tokens."""
    states = expected_outputs(segment_ids=SEGMENTS, padding_mask=MASK).sequence_output
    rows = [row[mask] for row, mask in zip(states[ROWS], MASK[ROWS])]
    made = {"mean": lambda x: x.mean(0), "max": lambda x: x.max(0), "cls": lambda x: x[0]}
    return np.stack([made[pooling](row) for row in rows])


@pytest.mark.parametrize("pooling", ["mean", "max", "cls"])
def test_vectors(pooling):
    pooled = expected_pooled(pooling)
    found = made_model(pooling=pooling, normalize=False)(INPUTS)
    assert found.shape == (4, 12) and found.dtype == "float32"
    np.testing.assert_allclose(found[ROWS], pooled, atol=2e-5)
    found = made_model(pooling=pooling)(INPUTS)
    unit = pooled / np.linalg.norm(pooled, axis=-1, keepdims=True)
    np.testing.assert_allclose(found[ROWS], unit, atol=2e-5)


@pytest.mark.parametrize("activation", ["tanh", None])
def test_a_dense_layer(activation):
    model = made_model(dense=5, dense_activation=activation, normalize=False)
    assert model.width == 5
    dense = reference.dense(expected_pooled("mean"), WEIGHTS["dense/kernel"], WEIGHTS["dense/bias"])
    expected = np.tanh(dense) if activation else dense
    np.testing.assert_allclose(model(INPUTS)[ROWS], expected, atol=2e-5)


def test_several_texts_an_example():
    model = made_model()
    several = {name: x.reshape(2, 2, 6) for name, x in INPUTS.items()}
    found = model(several)
    assert found.shape == (2, 2, 12)
    np.testing.assert_allclose(np.reshape(found, (4, 12))[ROWS], model(INPUTS)[ROWS], atol=1e-6)


def test_variables():
    check_variables(made_model(), {})
    model = made_model(dense=5)
    check_variables(model, {"dense/kernel": (12, 5), "dense/bias": (5,)})
    assert untrained(model) == POOLER


def test_saved_and_loaded(tmp_path):
    model = made_model(dense=5, pooling="max")
    model.compile("sgd", "mse", run_eagerly=True)
    model.fit(INPUTS, np.zeros((4, 5), "float32"), verbose=0)
    saved_and_loaded(model, tmp_path)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"pooling": "sum"}, r"`pooling` must be one of \['mean', 'cls', 'max'\]. Received: pool"),
        ({"dense": 0}, "`dense` must be at least 1, or None. Received: dense=0"),
        ({"dense": 2, "dense_activation": "x"}, "`activation` must be one of"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        made_model(**arguments)


def test_the_first_state_of_a_causal_encoder_says_nothing():
    with pytest.raises(ValueError, match='`pooling` must be "mean" or "max" for a causal encoder'):
        SequenceEmbedding(small_bert(causal=True), "cls")

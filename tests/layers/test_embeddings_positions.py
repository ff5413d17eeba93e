"""Position encodings: the learned table, and the waves of the paper."""

import numpy as np
import pytest

from kbert.layers.embeddings import LearnedPositions, SinusoidalPositions, sinusoidal_table
from tests import numpy_reference as reference
from tests.check_layer import assign_weights, check_layer

IDS = np.zeros((2, 3), "int32")


def test_learned_positions_are_the_first_rows():
    # The result has no batch axis, so there is no batch to vary.
    init = {"max_sequence_length": 5, "hidden_dim": 4}
    shapes = {"embeddings": (5, 4)}
    layer = check_layer(LearnedPositions, init, IDS, (3, 4), shapes, dynamic_batch=False)
    table = np.arange(20.0).reshape(5, 4)
    assign_weights(layer, {"embeddings": table})
    np.testing.assert_array_equal(layer(IDS), table[:3])


@pytest.mark.parametrize("interleaved", [True, False])
def test_waves_are_the_reference(interleaved):
    init = {"max_sequence_length": 50, "hidden_dim": 8, "interleaved": interleaved}
    ids = np.zeros((2, 40), "int32")
    layer = check_layer(SinusoidalPositions, init, ids, (40, 8), 0, dynamic_batch=False)
    if interleaved:
        expected = reference.sinusoidal_positions(50, 8)
    else:
        expected = reference.sinusoidal_positions_in_halves(50, 8)
    np.testing.assert_allclose(layer(ids), expected[:40], atol=1e-6)
    np.testing.assert_allclose(sinusoidal_table(50, 8, interleaved), expected, atol=1e-6)


def test_waves_at_far_positions():
    table = sinusoidal_table(5000, 16)
    expected = reference.sinusoidal_positions(5000, 16)
    np.testing.assert_allclose(table[4999], expected[4999], atol=1e-6)


@pytest.mark.parametrize("layer_class", [LearnedPositions, SinusoidalPositions])
def test_too_long_a_sequence(layer_class):
    message = "must not be longer than `max_sequence_length`=2. Received: length 3"
    with pytest.raises(ValueError, match=message):
        layer_class(2, 4)(IDS)


def test_odd_width():
    with pytest.raises(ValueError, match="`hidden_dim` must be even. Received: hidden_dim=5"):
        SinusoidalPositions(4, 5)

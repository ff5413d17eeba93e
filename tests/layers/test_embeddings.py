"""The table of token vectors, by hand."""

import numpy as np
import pytest

from kbert.layers.embeddings import TokenEmbedding
from tests.check_layer import assign_weights, check_layer

IDS = np.array([[0, 2, 1], [4, 4, 3]], "int32")


def test_ritual_and_rows():
    init = {"vocabulary_size": 5, "hidden_dim": 4}
    layer = check_layer(TokenEmbedding, init, IDS, (2, 3, 4), {"embeddings": (5, 4)})
    table = np.arange(20.0).reshape(5, 4)
    assign_weights(layer, {"embeddings": table})
    np.testing.assert_array_equal(layer(IDS), table[IDS])


@pytest.mark.parametrize("sizes", [(0, 4), (5, 0)])
def test_sizes_must_be_positive(sizes):
    received = f"Received: vocabulary_size={sizes[0]}, hidden_dim={sizes[1]}"
    with pytest.raises(ValueError, match=f"must be at least 1. {received}"):
        TokenEmbedding(*sizes)

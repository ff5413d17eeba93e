"""BERT's input against the NumPy reference."""

import numpy as np
import pytest

from kbert.layers.embeddings import BertEmbeddings
from tests import numpy_reference as reference
from tests.check_layer import assign_weights, check_layer

IDS = np.array([[1, 5, 2], [1, 9, 0]], "int32")
SEGMENTS = np.array([[0, 1, 1], [0, 0, 1]], "int32")
INIT = {"vocabulary_size": 10, "hidden_dim": 6, "max_sequence_length": 4, "epsilon": 1e-6}
SHAPES = {
    name.removeprefix("embeddings/"): shape
    for name, shape in reference.bert_array_shapes(10, 6, 8, 0, 4).items()
    if name.startswith("embeddings/")
}


def with_prefix(arrays):
    return {f"embeddings/{name}": array for name, array in arrays.items()}


def test_ritual_and_numbers():
    layer = check_layer(BertEmbeddings, INIT, (IDS, SEGMENTS), (2, 3, 6), SHAPES)
    arrays = reference.random_arrays(SHAPES)
    assign_weights(layer, arrays)
    expected = reference.bert_embeddings(IDS, SEGMENTS, with_prefix(arrays), 1e-6)
    np.testing.assert_allclose(layer(IDS, SEGMENTS), expected, atol=1e-5)


def test_absent_segments_are_zeros():
    layer = check_layer(BertEmbeddings, INIT, IDS, (2, 3, 6), SHAPES)
    arrays = reference.random_arrays(SHAPES)
    assign_weights(layer, arrays)
    expected = reference.bert_embeddings(IDS, np.zeros_like(IDS), with_prefix(arrays), 1e-6)
    np.testing.assert_allclose(layer(IDS), expected, atol=1e-5)


def test_more_kinds_of_segments():
    init = {**INIT, "num_segments": 3}
    shapes = {**SHAPES, "segment_embedding/embeddings": (3, 6)}
    layer = check_layer(BertEmbeddings, init, (IDS, SEGMENTS * 2), (2, 3, 6), shapes)
    arrays = reference.random_arrays(shapes)
    assign_weights(layer, arrays)
    expected = reference.bert_embeddings(IDS, SEGMENTS * 2, with_prefix(arrays), 1e-6)
    np.testing.assert_allclose(layer(IDS, SEGMENTS * 2), expected, atol=1e-5)


def test_of_one_segment_no_ids_are_read():
    layer = BertEmbeddings(**{**INIT, "num_segments": 1})
    layer.build()
    layer.segment_embedding.embeddings.assign(np.arange(6, dtype="float32")[None])
    np.testing.assert_array_equal(layer(IDS, SEGMENTS), layer(IDS))
    without = BertEmbeddings(**{**INIT, "num_segments": 0})
    assert np.abs(np.asarray(layer(IDS)) - np.asarray(without(IDS))).max() > 0.1


def test_dropout_only_in_training():
    layer = BertEmbeddings(**INIT, dropout=0.5)
    assert (np.asarray(layer(IDS, training=True)) == 0).any()
    assert not (np.asarray(layer(IDS)) == 0).any()


def test_too_long_a_sequence():
    message = "must not be longer than `max_sequence_length`=4. Received: length 5"
    with pytest.raises(ValueError, match=message):
        BertEmbeddings(**INIT)(np.zeros((1, 5), "int32"))


def test_no_segments_and_positions_behind_other_rows():
    init = {**INIT, "num_segments": 0, "first_position": 2}
    shapes = {**SHAPES, "position_embedding/embeddings": (6, 6)}
    del shapes["segment_embedding/embeddings"]
    layer = check_layer(BertEmbeddings, init, (IDS, SEGMENTS), (2, 3, 6), shapes)
    arrays = reference.random_arrays(shapes)
    assign_weights(layer, arrays)
    read = {
        **arrays,
        "position_embedding/embeddings": arrays["position_embedding/embeddings"][2:],
        "segment_embedding/embeddings": np.zeros((2, 6)),
    }
    expected = reference.bert_embeddings(IDS, SEGMENTS, with_prefix(read), 1e-6)
    np.testing.assert_allclose(layer(IDS, SEGMENTS), expected, atol=1e-5)
    one_by_one = layer(IDS.reshape(-1), positions=np.array([0, 1, 2] * 2))
    np.testing.assert_allclose(one_by_one, expected.reshape(6, 6), atol=1e-5)

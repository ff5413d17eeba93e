"""The inputs of exported functions."""

import numpy as np
import tensorflow as tf

from kbert.pipelines.signatures import question_specs, text_specs, token_inputs, token_specs


def test_text_specs():
    for pair, names in ((False, ["text"]), (True, ["text_a", "text_b"])):
        specs = text_specs(pair)
        assert [spec.name for spec in specs] == names
        assert all(spec.dtype == tf.string and spec.shape.rank == 1 for spec in specs)


def test_question_specs():
    specs = question_specs()
    assert [spec.name for spec in specs] == ["question", "context"]
    assert all(spec.dtype == tf.string and spec.shape.as_list() == [None] for spec in specs)


def test_token_specs():
    specs = token_specs()
    assert [(s.name, s.shape.rank, s.dtype) for s in specs] == [
        ("token_ids", 2, tf.int32),
        ("segment_ids", 2, tf.int32),
        ("lengths", 1, tf.int32),
    ]


def test_the_mask_comes_from_the_lengths():
    ids, segments = np.ones((3, 4), "int32"), np.zeros((3, 4), "int32")
    inputs = token_inputs(ids, segments, np.array([4, 1, 0], "int32"))
    expected = [[1, 1, 1, 1], [1, 0, 0, 0], [0, 0, 0, 0]]
    np.testing.assert_array_equal(inputs["padding_mask"], np.array(expected, bool))
    assert inputs["token_ids"] is ids and inputs["segment_ids"] is segments

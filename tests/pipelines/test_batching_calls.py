"""Texts in the input of a model's call."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from kbert.pipelines.batching import holds_texts

A, B = ["one", "two"], ["three", "four"]
FRAME = pd.DataFrame({"id": [1, 2], "text": A})


@pytest.mark.parametrize(
    "x, expected",
    [
        (A, True),
        (FRAME, True),
        (FRAME["text"], True),
        (tf.constant(A), True),
        ({"question": A, "context": B}, True),
        ((A, [["a"], ["b"]]), True),
        ("one", True),
        ({"token_ids": np.zeros((1, 2))}, False),
        (FRAME[["id"]], False),
        (tf.zeros(2), False),
        ([1, 2], False),
        (None, False),
        (tf.data.Dataset.from_tensors(A), False),
    ],
)
def test_whether_there_are_texts_in_what_a_model_is_called_with(x, expected):
    assert holds_texts(x) is expected

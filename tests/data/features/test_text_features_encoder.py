"""What a frozen encoder is asked, and what it gives for each token, by hand."""

import numpy as np
import pytest

from kbert.data.batches.packed_examples import PackedExamples
from kbert.data.features.text_features import FrozenEncoder


def packed() -> PackedExamples:
    """Texts 5 6 7 and 8, with padding 9."""
    return PackedExamples(
        np.array([5, 6, 7, 8], "int32"),
        np.array([0, 0, 1, 0], "int32"),
        np.array([0, 3]),
        np.array([3, 1], "int32"),
        np.zeros(2, bool),
        padding_id=9,
    )


def test_batches_are_padded_and_their_states_are_not():
    asked = {}

    def encode(inputs):
        asked.update(inputs)
        return np.stack([inputs["token_ids"], inputs["token_ids"] * 10.0], axis=-1)

    found = FrozenEncoder(encode, 2, "x").states(packed(), np.array([1, 0]))
    assert asked["token_ids"].tolist() == [[8, 9, 9], [5, 6, 7]]
    assert asked["segment_ids"].tolist() == [[0, 0, 0], [0, 0, 1]]
    assert asked["padding_mask"].tolist() == [[True, False, False], [True] * 3]
    assert asked["token_ids"].dtype == asked["segment_ids"].dtype == np.int32
    assert found.tolist() == [[8, 80], [5, 50], [6, 60], [7, 70]]


def test_another_shape():
    encoder = FrozenEncoder(lambda inputs: np.zeros((2, 3, 4)), 2, "x")
    with pytest.raises(ValueError, match=r"shape \(2, 3, 2\). Received: shape \(2, 3, 4\)"):
        encoder.states(packed(), np.array([0, 1]))


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_states_that_are_not_finite(number):
    def encode(inputs):
        states = np.zeros((2, 3, 2), "float32")
        states[1, 0, 1] = number  # row 1 is the text 1
        states[0, 1, 0] = np.nan if inputs["token_ids"][0, 1] == 9 else 0.0
        return states

    with pytest.raises(ValueError, match="finite states. Received: others for the text at 1"):
        FrozenEncoder(encode, 2, "x").states(packed(), np.array([0, 1]))


def test_what_padding_gives_does_not_matter():
    def encode(inputs):
        return np.where(inputs["padding_mask"][..., None], np.ones(2), np.nan)

    assert FrozenEncoder(encode, 2, "x").states(packed(), np.array([0, 1])).shape == (4, 2)

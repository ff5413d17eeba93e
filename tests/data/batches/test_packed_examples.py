"""Examples without padding, and some of them."""

import numpy as np
import pytest

from kbert.data.batches.dataset import batched_dataset
from kbert.data.batches.packed_examples import PackedExamples


@pytest.fixture
def packed() -> PackedExamples:
    """Examples of 2, 3 and 1 tokens."""
    return PackedExamples(
        np.array([5, 6, 7, 8, 9, 4], "int32"),
        np.array([0, 0, 0, 1, 1, 0], "int32"),
        np.array([0, 2, 5]),
        np.array([2, 3, 1], "int32"),
        np.array([False, True, False]),
    )


def test_select(packed) -> None:
    some = packed.select(np.array([1, 2]))
    assert len(some) == 2 and some.tokens == 4
    assert packed.tokens == 6
    assert some.truncated.tolist() == [True, False]


def test_batches_of_some(packed) -> None:
    """Tokens, and targets of tokens, are those of the examples that were chosen."""
    some = packed.select(np.array([1, 2]))
    labels = np.array([10, 11, 12, 13, 14, 15], "int32")
    ((inputs, targets),) = batched_dataset(some, token_labels=labels)
    assert inputs["token_ids"].numpy().tolist() == [[7, 8, 9], [4, 0, 0]]
    assert inputs["segment_ids"].numpy().tolist() == [[0, 1, 1], [0, 0, 0]]
    assert targets.numpy().tolist() == [[12, 13, 14], [15, -1, -1]]

"""Lengths, sizes and weights that examples of several tasks do not have."""

import numpy as np
import pytest

from kbert.data.batches.mixtures import Columns, Sampling, mixed_dataset, mixture
from kbert.data.batches.packed_examples import PackedExamples


def columns(count: int, length: int) -> Columns:
    ids, starts = np.arange(count * length, dtype="int32"), np.arange(count) * length
    lengths, cut = np.full(count, length, "int32"), np.zeros(count, bool)
    packed = PackedExamples(ids, np.zeros_like(ids), starts.astype("int64"), lengths, cut)
    return Columns(packed, np.zeros(count, "int32"))


MIXED = mixture({"a": columns(4, 3), "b": columns(3, 5)})


def test_only_whole_batches_without_sampling():
    found = list(mixed_dataset(MIXED, None, batch_size=5, drop_remainder=True))
    assert [len(x["task_ids"]) for x, _ in found] == [5]


def test_a_length_that_would_cut():
    with pytest.raises(ValueError, match="at least the longest example, 5 tokens. Rec.*=4"):
        mixed_dataset(MIXED, fixed_length=4)


def test_weights_for_another_number_of_tasks():
    with pytest.raises(ValueError, match="one number a task. Received: 2 for 3 tasks"):
        Sampling(weights=(1.0, 2.0)).quotas([1, 2, 3], 0, 1)

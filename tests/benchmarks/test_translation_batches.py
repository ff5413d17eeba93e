"""Shapes of batches of sentence pairs: the best by brute force."""

import importlib
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert.data.translation.parallel_batches import Bucket, fixed_batch_plan

PAIRS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=60).map(
    lambda x: np.array(x, "int32").reshape(-1, 2).T
)


@pytest.fixture(scope="module")
def module(in_checkout):
    """The part of benchmarks/ that shapes batches of translators."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(in_checkout("benchmarks")))
        return importlib.import_module("side_by_side.translation_batches")


@given(PAIRS, st.integers(1, 300), st.integers(1, 5), st.integers(1, 8))
def test_shapes_are_within_the_budget_and_hold_every_pair(module, lengths, budget, count, multiple):
    buckets = module.length_buckets(*lengths, budget, count, multiple)
    assert len(buckets) <= count
    for bucket in buckets:
        assert bucket.length % multiple == 0
        assert bucket.rows == 1 or bucket.rows * bucket.length <= budget
        assert bucket.rows < multiple or bucket.rows % multiple == 0
    batches = fixed_batch_plan(*lengths, buckets)
    assert sum(len(batch.indices) for batch in batches) == lengths.shape[1]


@given(PAIRS, st.integers(1, 200), st.integers(1, 3))
def test_no_other_buckets_have_fewer_cells(module, lengths, budget, count):
    """Brute force over all choices of lengths that occur."""
    lengths = lengths[:, :20] // 4
    if not lengths.size:
        return
    values = np.unique(np.maximum(lengths.max(axis=0), 1)).tolist()

    def cells(buckets):
        plan = fixed_batch_plan(*lengths, buckets)
        return sum(batch.bucket.rows * batch.bucket.length for batch in plan)

    fewest = min(
        cells([Bucket(max(1, budget // value), value) for value in (*chosen, values[-1])])
        for size in range(count)
        for chosen in combinations(values[:-1], size)
    )
    assert cells(module.length_buckets(*lengths, budget, count, multiple=1)) == fewest

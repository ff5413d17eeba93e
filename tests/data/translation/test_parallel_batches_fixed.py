"""Batches of sentence pairs in fixed shapes, every pair once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert.data.translation.parallel_batches import (
    Bucket,
    FixedBatch,
    fixed_batch_plan,
    fixed_padding_share,
)

PAIRS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=60).map(
    lambda x: np.array(x, "int32").reshape(-1, 2).T
)


def shapes(batches):
    return [(batch.bucket.rows, batch.bucket.length, batch.indices.tolist()) for batch in batches]


@given(PAIRS, st.sets(st.integers(1, 39)), st.integers(1, 8), st.booleans())
def test_every_pair_once_within_the_shapes(lengths, some, rows, shuffle):
    buckets = [Bucket(rows, length) for length in {*some, 40}]
    batches = fixed_batch_plan(*lengths, buckets, shuffle, seed=1, epoch=2)
    assert sorted(i for batch in batches for i in batch.indices) == list(range(lengths.shape[1]))
    partial = [batch.bucket for batch in batches if len(batch.indices) < batch.bucket.rows]
    assert len(set(partial)) == len(partial)  # one a bucket
    for batch in batches:
        assert 1 <= len(batch.indices) <= batch.bucket.rows
        assert lengths[:, batch.indices].max() <= batch.bucket.length
        assert batch.padded_indices.shape == (batch.bucket.rows,)
    again = fixed_batch_plan(*lengths, buckets, shuffle, seed=1, epoch=2)
    assert shapes(again) == shapes(batches)


def test_by_hand():
    # Longer sides 3, 8, 2, 5, 3. Unshuffled: the longest first, equals in their order.
    sources, targets = np.array([3, 8, 1, 5, 3]), np.array([2, 1, 2, 5, 3])
    buckets = [Bucket(2, 3), Bucket(2, 8)]
    batches = fixed_batch_plan(sources, targets, buckets)
    assert shapes(batches) == [(2, 8, [1, 3]), (2, 3, [0, 4]), (2, 3, [2])]
    assert batches[2].padded_indices.tolist() == [2, -1]
    # Two sides of 16 + 6 + 6 cells; 20 + 13 tokens.
    assert fixed_padding_share(sources, targets, batches) == pytest.approx(1 - 33 / 56)
    # A pair goes to the shortest bucket that holds it, whatever the order of the buckets.
    assert shapes(fixed_batch_plan(sources, targets, buckets[::-1])) == shapes(batches)


def test_epochs_differ_in_company_but_not_in_number():
    lengths = np.random.default_rng(0).integers(1, 60, (2, 500))
    buckets = [Bucket(8, length) for length in (16, 32, 48, 64)]
    plans = [fixed_batch_plan(*lengths, buckets, True, 0, epoch) for epoch in range(2)]
    counts = [sorted((b.bucket.length, len(b.indices)) for b in plan) for plan in plans]
    assert counts[0] == counts[1]
    companies = [{frozenset(batch.indices.tolist()) for batch in plan} for plan in plans]
    assert not companies[0] & companies[1]
    assert shapes(plans[0]) != sorted(shapes(plans[0]), reverse=True)


def test_nothing():
    none = np.zeros(0, int)
    assert fixed_batch_plan(none, none, []) == []
    assert fixed_batch_plan(none, none, [Bucket(1, 8)], True) == []
    assert fixed_padding_share(none, none, []) == 0.0


def test_wrong_arguments():
    ones = np.ones(2, int)
    with pytest.raises(ValueError, match="`rows` and `length` must be at .* rows=0, length=4"):
        Bucket(0, 4)
    with pytest.raises(ValueError, match="`buckets` must have different lengths.*lengths 4, 4"):
        fixed_batch_plan(ones, ones, [Bucket(1, 4), Bucket(2, 4)])
    message = (
        "`buckets` must hold every pair. Received: 4 tokens at most, and 1 longer pairs, the first "
        "at index 1 with 9 tokens"
    )
    with pytest.raises(ValueError, match=message):
        fixed_batch_plan(ones, np.array([4, 9]), [Bucket(1, 4)])
    with pytest.raises(ValueError, match="Received: 0 tokens at most, and 2 longer pairs"):
        fixed_batch_plan(ones, ones, [])


def test_a_batch_that_is_full_has_no_padding():
    batch = FixedBatch(Bucket(2, 4), np.array([5, 6]))
    assert batch.padded_indices.tolist() == [5, 6]

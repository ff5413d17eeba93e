"""Batches of sentence pairs: every pair once, within the budget, the same again for a seed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert.data.translation.parallel_batches import parallel_batch_plan, parallel_padding_share

PAIRS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=80).map(
    lambda x: np.array(x, "int32").reshape(-1, 2).T
)
BUDGETS = st.integers(1, 300)


def rows_of(batches):
    return [tuple(batch.tolist()) for batch in batches]


def shapes_of(lengths, batches):
    return sorted((len(batch), int(lengths[:, batch].max())) for batch in batches)


def realistic(count, seed=77):
    """Lengths like those of written sentences: log-normal, the sides alike but not equal."""
    random = np.random.default_rng(seed)
    sources = np.exp(random.normal(3.0, 0.5, count)).clip(2, 200)
    targets = (sources * np.exp(random.normal(0.0, 0.2, count))).clip(2, 200)
    return np.stack([sources, targets]).astype(int)


@given(PAIRS, BUDGETS, st.booleans(), st.integers(0, 3), st.integers(0, 3))
def test_every_pair_once_within_the_budget(lengths, budget, shuffle, seed, epoch):
    batches = parallel_batch_plan(*lengths, budget, shuffle, seed, epoch)
    assert sorted(i for batch in batches for i in batch) == list(range(lengths.shape[1]))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * int(lengths[:, batch].max()) <= budget
    again = parallel_batch_plan(*lengths, budget, shuffle, seed, epoch)
    assert rows_of(again) == rows_of(batches)


@given(PAIRS, BUDGETS, st.integers(0, 3), st.integers(0, 3))
def test_every_epoch_has_the_same_shapes(lengths, budget, seed, epoch):
    plain = parallel_batch_plan(*lengths, budget)
    shuffled = parallel_batch_plan(*lengths, budget, True, seed, epoch)
    assert shapes_of(lengths, shuffled) == shapes_of(lengths, plain)


def test_by_hand():
    # Longer sides 4, 6, 6, 3, 1; 12 cells: two of 6, then three of 4 and fewer. Of the two of 6 the
    # one with the shorter source comes first.
    sources = np.array([4, 6, 2, 3, 1])
    targets = np.array([1, 5, 6, 3, 0])
    assert rows_of(parallel_batch_plan(sources, targets, 12)) == [(2, 1), (0, 3, 4)]
    # Cells: 2 * (6 + 6) + 3 * (4 + 3) = 45; tokens: 16 + 15.
    batches = parallel_batch_plan(sources, targets, 12)
    assert parallel_padding_share(sources, targets, batches) == pytest.approx(14 / 45)


def test_a_longer_pair_is_a_batch_of_its_own():
    lengths = np.array([2, 50, 2]), np.array([2, 2, 2])
    assert rows_of(parallel_batch_plan(*lengths, 10)) == [(1,), (0, 2)]


def test_equals_keep_their_order_and_seeds_have_no_part_unless_shuffled():
    lengths = np.array([3, 3, 3, 9]), np.array([3, 3, 3, 9])
    assert rows_of(parallel_batch_plan(*lengths, 9, seed=4, epoch=2)) == [(3,), (0, 1, 2)]


def test_order_and_company_change_with_epoch_and_seed():
    lengths = realistic(30_000)
    plans = [
        rows_of(parallel_batch_plan(*lengths, 4096, True, seed, epoch))
        for seed, epoch in [(0, 0), (0, 1), (1, 0)]
    ]
    for i in range(3):
        for j in range(i):
            companies = [{frozenset(batch) for batch in plan} for plan in (plans[i], plans[j])]
            # Pairs so long that few are like them meet again.
            assert len(companies[0] & companies[1]) < 0.1 * len(plans[i])
    longest = [lengths[:, list(batch)].max() for batch in plans[0]]
    assert longest != sorted(longest, reverse=True)


def test_little_is_padding():
    lengths = realistic(30_000)
    random = np.random.default_rng(1).permutation(30_000)
    plain = parallel_padding_share(*lengths, [random[i : i + 100] for i in range(0, 30_000, 100)])
    exact = parallel_padding_share(*lengths, parallel_batch_plan(*lengths, 4096))
    shuffled = parallel_padding_share(*lengths, parallel_batch_plan(*lengths, 4096, True))
    assert exact < shuffled < 0.09 < 0.6 < plain


def test_little_of_multi30k_is_padding(multi30k_lengths):
    lengths = multi30k_lengths
    batches = parallel_batch_plan(*lengths, 4096, True)
    assert parallel_padding_share(*lengths, batches) < 0.07
    # Nearly all of the budget is used: longer sides alone, as the budget counts them.
    assert lengths.max(axis=0).sum() / 4096 / len(batches) > 0.97


def test_nothing():
    none = np.zeros(0, int)
    assert parallel_batch_plan(none, none, 4) == []
    assert parallel_batch_plan([], [], 4, True) == []
    assert parallel_padding_share(none, none, []) == 0.0


@pytest.mark.parametrize(
    "sources, targets, budget, message",
    [
        ([1], [1], 0, "`batch_tokens` must be at least 1. Received: batch_tokens=0"),
        ([1, 2], [1], 9, "`target_lengths` must be as long as `source_lengths`. Received: 2 sou"),
        ([[1]], [1], 9, r"`source_lengths` must be whole numbers of shape \(n,\)\. .*\(1, 1\)"),
        ([1], [1.5], 9, r"`target_lengths` must be whole numbers of shape .*dtype float64"),
        ([1], [-2], 9, "`target_lengths` must be at least 0. Received: -2"),
    ],
)
def test_wrong_arguments(sources, targets, budget, message):
    with pytest.raises(ValueError, match=message):
        parallel_batch_plan(np.array(sources), np.array(targets), budget)

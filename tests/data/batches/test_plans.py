"""Batches of like length: every example once, within the budget, the same again for a seed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert.data.batches.plans import (
    BATCHES_PER_POOL,
    batch_plan,
    padding_share,
    random_batches,
    whole_batches,
    within_budget,
)

LENGTHS = st.lists(st.integers(0, 60), max_size=80).map(lambda x: np.array(x, "int32"))
SIZES = st.integers(1, 20)
BUDGETS = st.integers(1, 300)


def test_whole_batches_by_hand():
    plan = [np.array([3, 1]), np.array([2]), np.array([0, 4])]
    assert rows_of(whole_batches(plan, 2)) == [(3, 1), (0, 4)]
    with pytest.raises(ValueError, match="Received: batch_size=3, 5 examples"):
        whole_batches(plan, 3)


def rows_of(batches):
    return [tuple(batch.tolist()) for batch in batches]


def cells(lengths, batch):
    return len(batch) * int(lengths[batch].max())


@given(LENGTHS, SIZES, st.booleans(), st.integers(0, 3), st.integers(0, 3))
def test_by_count(lengths, size, shuffle, seed, epoch):
    batches = batch_plan(lengths, size, shuffle=shuffle, seed=seed, epoch=epoch)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    sizes = sorted((len(batch) for batch in batches), reverse=True)
    expected = [size] * (len(lengths) // size) + [len(lengths) % size] * (len(lengths) % size > 0)
    assert sizes == expected
    again = batch_plan(lengths, size, shuffle=shuffle, seed=seed, epoch=epoch)
    assert rows_of(again) == rows_of(batches)


@given(LENGTHS, BUDGETS, st.booleans(), st.integers(0, 3))
def test_by_budget(lengths, budget, shuffle, epoch):
    batches = batch_plan(lengths, None, budget, shuffle=shuffle, epoch=epoch)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or cells(lengths, batch) <= budget
    again = batch_plan(lengths, None, budget, shuffle=shuffle, epoch=epoch)
    assert rows_of(again) == rows_of(batches)


def test_a_budget_is_used_up():
    # Longest first, 12 cells: 5, 5 / 4, 4, 3 / 3, 2, 1; one more would be too many each time.
    lengths = np.array([3, 5, 1, 4, 2, 5, 4, 3])
    assert rows_of(batch_plan(lengths, None, 12)) == [(1, 5), (3, 6, 0), (7, 4, 2)]


def test_a_longer_example_is_a_batch_of_its_own():
    assert rows_of(batch_plan(np.array([2, 50, 2]), None, 10)) == [(1,), (0, 2)]


def test_within_a_budget_and_a_number_of_rows():
    # 8 cells, three rows at most: 9 is too long, two of 3 fit, of the shorter ones four would.
    lengths = np.array([1, 2, 9, 3, 3, 1, 2, 0])
    order = np.array([2, 3, 4, 1, 6, 0, 5, 7])
    found = within_budget(order, lengths, 8, most_rows=3)
    assert rows_of(found) == [(2,), (3, 4), (1, 6, 0), (5, 7)]
    assert rows_of(within_budget(order, lengths, 8)) == [(2,), (3, 4), (1, 6, 0, 5), (7,)]
    assert within_budget(order[:0], lengths, 8) == []


def test_unshuffled_the_longest_come_first_and_equals_keep_their_order():
    lengths = np.array([1, 3, 2, 3, 1])
    assert rows_of(batch_plan(lengths, 2)) == [(1, 3), (2, 0), (4,)]
    # Seed and epoch have no part in it.
    assert rows_of(batch_plan(lengths, 2, seed=5, epoch=7)) == [(1, 3), (2, 0), (4,)]


def test_shuffled_order_and_company_change_with_epoch_and_seed():
    lengths = np.random.default_rng(0).integers(5, 9, 200)
    plans = [
        rows_of(batch_plan(lengths, 10, shuffle=True, seed=seed, epoch=epoch))
        for seed, epoch in [(0, 0), (0, 1), (1, 0)]
    ]
    for i in range(3):
        for j in range(i):
            assert plans[i] != plans[j]
            company = [{frozenset(batch) for batch in plan} for plan in (plans[i], plans[j])]
            assert len(company[0] & company[1]) < 5  # not the same batches in another order
    # The order of the batches is not that of length.
    longest = [lengths[list(batch)].max() for batch in plans[0]]
    assert longest != sorted(longest, reverse=True)


def test_like_lengths_come_together_inside_a_pool():
    lengths = np.arange(4 * BATCHES_PER_POOL)  # one pool of batches of 4
    batches = batch_plan(lengths, 4, shuffle=True)
    assert all(lengths[batch].max() - lengths[batch].min() == 3 for batch in batches)


def test_pools_are_smaller_than_the_data():
    # Two pools of 200: most batches of 2 hold neighbours of their half, not of the whole.
    lengths = np.arange(4 * BATCHES_PER_POOL)
    batches = batch_plan(lengths, 2, shuffle=True)
    gaps = [int(lengths[batch].max() - lengths[batch].min()) for batch in batches]
    assert max(gaps) > 1 and np.mean(gaps) < 4


def test_random_batches_in_parts_by_hand():
    """Nine examples in batches of 4: the ninth cannot fill two parts, and joins the one before."""
    lengths = np.arange(9)[::-1]
    parts = random_batches(lengths, 4, 2, seed=3)
    order = np.random.default_rng((3, 0)).permutation(9).tolist()
    first, last = sorted(order[:4]), sorted(order[4:])  # the longest comes first
    assert [part.tolist() for part in parts] == [first[:2], first[2:], last[:3], last[3:]]


@given(LENGTHS, SIZES, st.integers(1, 20), st.integers(0, 3))
def test_random_batches(lengths, size, parts, epoch):
    if not parts <= min(size, len(lengths)):
        with pytest.raises(ValueError, match=f"Received: parts={parts}"):
            random_batches(lengths, size, parts, epoch=epoch)
        return
    found = random_batches(lengths, size, parts, seed=1, epoch=epoch)
    assert sorted(i for part in found for i in part) == list(range(len(lengths)))
    assert len(found) % parts == 0
    for start in range(0, len(found), parts):
        sizes = [len(part) for part in found[start : start + parts]]
        assert max(sizes) - min(sizes) <= 1 and min(sizes) > 0
        assert sum(sizes) == size or start + parts == len(found)
        batch = lengths[np.concatenate(found[start : start + parts])]
        assert np.all(np.diff(batch) <= 0)


def test_company_of_random_batches_is_random():
    """Mean length of a batch varies as chance has it, unlike that of batches of like length."""
    lengths = np.random.default_rng(0).integers(10, 100, 6400)
    whole = np.array([lengths[batch].mean() for batch in random_batches(lengths, 64, 1, seed=2)])
    assert whole.std() == pytest.approx(lengths.std() / 8, rel=0.25)  # 100 batches: 7 %


def test_padding_share_by_hand():
    # Batches (5, 5, 3) and (2, 1): 13 + 3 tokens in 15 + 4 cells.
    lengths = np.array([5, 2, 3, 5, 1])
    batches = batch_plan(lengths, 3)
    assert padding_share(lengths, batches) == pytest.approx(3 / 19)
    assert padding_share(lengths, [np.array([i]) for i in range(5)]) == 0.0
    assert padding_share(lengths[:0], []) == 0.0


def test_length_buckets_save_padding():
    lengths = np.random.default_rng(1).geometric(0.05, 3000).clip(3, 128)
    sorted_whole = padding_share(lengths, batch_plan(lengths, 32))
    bucketed = padding_share(lengths, batch_plan(lengths, 32, shuffle=True))
    order = np.random.default_rng(2).permutation(3000)
    plain = padding_share(lengths, [order[i : i + 32] for i in range(0, 3000, 32)])
    assert sorted_whole < 0.05 < bucketed < 0.25 < 0.7 < plain


def test_nothing():
    for arguments in ((4, None), (None, 4)):
        assert batch_plan(np.zeros(0, int), *arguments) == []
        assert batch_plan(np.zeros(0, int), *arguments, shuffle=True) == []


def test_examples_without_tokens():
    lengths = np.zeros(5, int)
    for shuffle in (False, True):
        batches = batch_plan(lengths, None, 3, shuffle=shuffle)
        assert sorted(i for batch in batches for i in batch) == list(range(5))


@pytest.mark.parametrize(
    "size, budget, message",
    [
        (
            4,
            64,
            "`batch_size` must be None where `batch_tokens` is given. Received: batch_size=4, "
            "batch_tokens=64",
        ),
        (None, None, "`batch_size` must be at least 1. Received: batch_size=None"),
        (0, None, "`batch_size` must be at least 1. Received: batch_size=0"),
        (None, 0, "`batch_tokens` must be at least 1. Received: batch_tokens=0"),
        (-3, None, "`batch_size` must be at least 1. Received: batch_size=-3"),
    ],
)
def test_wrong_arguments(size, budget, message):
    with pytest.raises(ValueError, match=message):
        batch_plan(np.ones(3, int), size, budget)

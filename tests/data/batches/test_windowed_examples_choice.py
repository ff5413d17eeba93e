"""Windows with an answer stay; of the others as many as asked for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert.data.batches.windowed_examples import choose_windows

ROW = np.array([0, 0, 0, 0, 1, 1, 3, 3, 3])
HAS = np.array([0, 1, 0, 0, 0, 0, 1, 1, 0], bool)


def test_by_hand() -> None:
    """Row 1 has no answer and keeps one window; row 3 has one other."""
    chosen = choose_windows(ROW, HAS, 1, seed=1).tolist()
    assert {1, 6, 7, 8} <= set(chosen)
    assert len(chosen) == 6
    assert sum(i in (0, 2, 3) for i in chosen) == sum(i in (4, 5) for i in chosen) == 1


def test_none_and_all() -> None:
    assert choose_windows(ROW, HAS, 0, seed=1).tolist() == [1, 6, 7]
    assert choose_windows(ROW, HAS, 3, seed=1).tolist() == list(range(9))
    assert choose_windows(ROW[:0], HAS[:0], 2, seed=1).tolist() == []


def test_each_window_is_drawn_alike() -> None:
    """Of three windows each comes in a third of the draws; the deviation is 0.011."""
    drawn = [
        i for seed in range(2000) for i in choose_windows(ROW, HAS, 1, seed) if i in (0, 2, 3)
    ]
    counts = np.bincount(drawn, minlength=4)[[0, 2, 3]] / 2000
    np.testing.assert_allclose(counts, 1 / 3, atol=0.05)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=40),
    st.integers(0, 4),
    st.integers(0, 2**32 - 1),
)
def test_against_a_loop(windows, others, seed) -> None:
    """What a loop over the rows counts."""
    windows = sorted(windows, key=lambda window: window[0])
    row = np.array([window[0] for window in windows], "int32")
    has_answer = np.array([window[1] for window in windows], bool)
    chosen = choose_windows(row, has_answer, others, seed).tolist()
    assert chosen == sorted(set(chosen)) == choose_windows(row, has_answer, others, seed).tolist()
    assert [i for i in chosen if has_answer[i]] == np.flatnonzero(has_answer).tolist()
    for number in set(row.tolist()):
        rest = int(np.sum((row == number) & ~has_answer))
        assert sum(row[i] == number and not has_answer[i] for i in chosen) == min(others, rest)


def test_errors() -> None:
    with pytest.raises(ValueError, match="`others` must be 0 or more. Received: others=-1"):
        choose_windows(ROW, HAS, -1, seed=1)
    with pytest.raises(ValueError, match="one entry a window. Received: 9 and 8"):
        choose_windows(ROW, HAS[:8], 1, seed=1)

from dataclasses import dataclass

import numpy as np
import pytest

from kbert.data.tables.columns import Columns


@dataclass(frozen=True)
class Pairs(Columns):
    left: list[int]
    right: list[str] | None
    source: str = "by hand"

    columns = ("left", "right")


def test_rows_are_chosen_in_all_columns():
    pairs = Pairs([1, 2, 3], ["a", "b", "c"])
    assert len(pairs) == 3
    assert pairs.select([2, 0]) == Pairs([3, 1], ["c", "a"])
    assert pairs.head(2) == Pairs([1, 2], ["a", "b"])
    assert pairs.head(9) == pairs
    assert Pairs([1, 2], None, "x").select([1]) == Pairs([2], None, "x")


def test_rows_that_are_not_there_and_masks():
    pairs = Pairs([1, 2], None)
    for wrong in ([2], [-1], [True, False], np.array([True, False])):
        with pytest.raises(ValueError, match=r"must be in \[0, 2\). Received: (2|-1|True)"):
            pairs.select(wrong)
    assert pairs.select(np.flatnonzero([False, True])) == Pairs([2], None)


def test_columns_of_other_lengths_and_no_rows():
    with pytest.raises(ValueError, match="`right` must be as long as `left`, 2. Received: 1 items"):
        Pairs([1, 2], ["a"])
    with pytest.raises(ValueError, match="`count` must be at least 1. Received: count=0"):
        Pairs([1], None).head(0)

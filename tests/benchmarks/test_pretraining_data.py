"""Text to examples: both sides are measured in one way."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest


def test_a_speed_is_the_median_of_the_rounds_without_the_start_up(
    program: Callable[[str], ModuleType],
):
    pytest.importorskip("official", reason="Model Garden is not installed: pip install '.[bench]'")
    small, text = Path("small"), Path("text")
    seconds = {small: iter([50.0, 9.0, 1.0, 2.0]), text: iter([4.0, 7.0, 12.0])}

    def run(given: Path) -> tuple[int, float]:
        return 100, next(seconds[given])

    # By hand: the first start does not count, the others have a median of 2 s; then it is the
    # median of 100 / 2, 100 / 5 and 100 / 10.
    assert program("pretraining_data").speed(run, text, small, 3) == 20.0

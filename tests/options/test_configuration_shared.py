"""What a configuration says about where it trains, against the rest of it."""

from types import SimpleNamespace

import pytest

from kbert.options.configuration import check_strategy


def config(**values):
    return SimpleNamespace(**{"strategy": "one", "replicas": None, "save_every": 5, **values})


def test_what_goes_together():
    check_strategy(config())
    check_strategy(config(strategy="mirrored", replicas=2, save_every=None, seeds=3))
    check_strategy(config(strategy="multi-worker", seeds=1, grid=False))


@pytest.mark.parametrize(
    "values, told",
    [
        ({"replicas": 2}, "`replicas` must be left out with strategy='one'. Received: replicas=2"),
        ({"strategy": "multi-worker", "seeds": 2}, "`seeds` must be 1 with"),
        ({"strategy": "multi-worker", "grid": True}, "`grid` must be false with"),
        ({"strategy": "multi-worker", "save_every": None}, "`save_every` must be given with"),
    ],
)
def test_what_does_not(values, told):
    with pytest.raises(ValueError, match=told):
        check_strategy(config(**values))

import pytest

from kbert.training.callbacks.state_saver import steps_done


@pytest.mark.parametrize(
    ("batch", "params", "done"),
    [(0, {"steps": 5}, 1), (3, {"steps": 5}, 4), (5, {"steps": 5}, 5), (7, {"steps": None}, 8)]
    + [(7, {}, 8), (0, None, 1)],
)
def test_the_last_call_may_be_short(batch, params, done):
    assert steps_done(batch, params) == done

"""Learning rates by hand."""

import keras
import numpy as np
import pytest

from kbert.optimization.schedules import WarmupLinearDecay
from tests import numpy_reference as reference


def test_numbers_by_hand():
    # Peak 0.001, 10 steps of rise, 100 in all.
    schedule = WarmupLinearDecay(1e-3, 100, 10)
    expected = {
        0: 0.0,
        1: 1e-4,
        5: 5e-4,
        9: 9e-4,
        10: 1e-3,  # the end of the warm-up
        55: 5e-4,  # half way down
        99: 1e-3 / 90,  # the last update
        100: 0.0,
        1000: 0.0,
    }
    for step, rate in expected.items():
        assert float(schedule(step)) == pytest.approx(rate, rel=1e-6, abs=1e-12), step


@pytest.mark.parametrize("total, warmup", [(100, 10), (100, 0), (7, 3), (1, 0), (1, 1), (5, 5)])
def test_reference_at_every_step(total, warmup):
    schedule = WarmupLinearDecay(2e-5, total, warmup)
    for step in range(total + 3):
        expected = reference.warmup_then_linear_decay(step, 2e-5, warmup, total)
        assert float(schedule(step)) == pytest.approx(expected, rel=1e-5, abs=1e-12), step


def test_without_warm_up_it_begins_at_the_peak():
    assert float(WarmupLinearDecay(0.5, 4)(0)) == 0.5


def test_a_step_counter_and_the_type():
    step = keras.Variable(5, dtype="int64", trainable=False)
    rate = WarmupLinearDecay(1e-3, 100, 10)(step)
    assert rate.dtype == "float32" and rate.shape == ()
    np.testing.assert_allclose(float(rate), 5e-4, rtol=1e-6)


def test_configuration():
    config = WarmupLinearDecay(2e-5, 100, 10).get_config()
    assert config == {"peak": 2e-5, "total_steps": 100, "warmup_steps": 10}
    stored = keras.saving.serialize_keras_object(WarmupLinearDecay(2e-5, 100, 10))
    assert stored["registered_name"] == "kbert>WarmupLinearDecay"
    assert keras.saving.deserialize_keras_object(stored).get_config() == config


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((-1.0, 10), "`peak` must not be negative. Received: peak=-1.0"),
        ((1.0, 0), "`total_steps` must be at least 1. Received: total_steps=0"),
        (
            (1.0, 10, 11),
            r"`warmup_steps` must be in \[0, total_steps=10\]. Received: warmup_steps=11",
        ),
        ((1.0, 10, -1), r"`warmup_steps` must be in .* Received: warmup_steps=-1"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        WarmupLinearDecay(*arguments)

"""Learning rates by hand."""

import keras
import numpy as np
import pytest

from kbert.optimization.schedules import InverseSquareRootDecay, WarmupLinearDecay
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


# --- inverse square root ---------------------------------------------------------------------


def test_inverse_square_root_by_hand():
    # Width 100, 400 updates of warm-up: the peak is 1 / sqrt(100 * 400) = 1/200.
    schedule = InverseSquareRootDecay(400, hidden_dim=100)
    expected = {
        0: 1 / 200 / 400,  # the first update
        99: 1 / 800,  # a quarter of the way up
        399: 1 / 200,  # update number 400
        1599: 1 / 400,  # four times as many updates: half the rate
        39999: 1 / 2000,
    }
    for step, rate in expected.items():
        assert float(schedule(step)) == pytest.approx(rate, rel=1e-6), step
    assert max(float(schedule(step)) for step in range(380, 420)) == float(schedule(399))


def test_the_paper_s_numbers():
    # Base model: width 512, 4000 warm-up steps; the peak is 7e-4 in one digit.
    schedule = InverseSquareRootDecay(4000, hidden_dim=512)
    assert float(schedule(3999)) == pytest.approx((512 * 4000) ** -0.5, rel=1e-6)
    assert round(float(schedule(3999)), 4) == 0.0007


@pytest.mark.parametrize("width, warmup", [(512, 4000), (128, 7), (1, 1)])
def test_inverse_square_root_reference(width, warmup):
    schedule = InverseSquareRootDecay(warmup, hidden_dim=width)
    same = InverseSquareRootDecay(warmup, peak=(width * warmup) ** -0.5)
    for step in [*range(20), 3998, 3999, 4000, 100_000]:
        expected = reference.inverse_square_root_rate(step + 1, width, warmup)
        assert float(schedule(step)) == pytest.approx(expected, rel=1e-6), step
        assert float(same(step)) == pytest.approx(expected, rel=1e-6), step


def test_an_explicit_peak_and_a_step_counter():
    schedule = InverseSquareRootDecay(2000, peak=5e-3)
    rate = schedule(keras.Variable(1999, dtype="int64", trainable=False))
    assert rate.dtype == "float32" and rate.shape == ()
    assert float(rate) == pytest.approx(5e-3, rel=1e-6)


def test_the_last_steps_cool_down_by_hand():
    whole = InverseSquareRootDecay(4, peak=0.2)
    cooled = InverseSquareRootDecay(4, peak=0.2, total_steps=20, cooldown_steps=4)
    for step in range(17):  # update number 17 is the first of the last four, at their full rate
        assert float(cooled(step)) == float(whole(step))
    # 0.2 * sqrt(4 / n) * (1, 3/4, 1/2, 1/4) for n = 17, 18, 19, 20, and 0 behind the end.
    by_hand = [0.097014, 0.070711, 0.045883, 0.022361, 0.0, 0.0]
    assert [float(cooled(step)) for step in range(16, 22)] == pytest.approx(by_hand, abs=1e-6)


COOLED = {"peak": 5e-3, "total_steps": 50, "cooldown_steps": 48}


@pytest.mark.parametrize("options", [{"hidden_dim": 512}, {"peak": 5e-3}, COOLED])
def test_inverse_square_root_configuration(options):
    schedule = InverseSquareRootDecay(10, **options)
    config = schedule.get_config()
    rest = {"hidden_dim": None, "peak": None, "total_steps": None, "cooldown_steps": 0}
    assert config == {"warmup_steps": 10} | rest | options
    stored = keras.saving.serialize_keras_object(schedule)
    assert stored["registered_name"] == "kbert>InverseSquareRootDecay"
    again = keras.saving.deserialize_keras_object(stored)
    assert again.get_config() == config
    assert float(again(3)) == float(schedule(3))


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((0, 512), "`warmup_steps` must be at least 1. Received: warmup_steps=0"),
        ((10, 0), "`hidden_dim` must be at least 1. Received: hidden_dim=0"),
        ((10, None, -1.0), "`peak` must not be negative. Received: peak=-1.0"),
        ((10,), "Exactly one of .* must be given. Received: hidden_dim=None, peak=None"),
        ((10, 8, None, None, 5), "`cooldown_steps` must be between 0 .*=5, total_steps=None"),
        ((10, 8, None, 4, 5), "between 0 and `total_steps`. Received: .*=5, total_steps=4"),
        ((10, 8, None, 4, -1), "between 0 and `total_steps`. Received: cooldown_steps=-1"),
        ((10, 8, 0.1), "Exactly one of .* must be given. Received: hidden_dim=8, peak=0.1"),
    ],
)
def test_wrong_arguments_of_inverse_square_root(arguments, message):
    with pytest.raises(ValueError, match=message):
        InverseSquareRootDecay(*arguments)

"""Length penalties: numbers by hand from their formulas."""

import numpy as np
import pytest

from kbert.decoding.scores import length_penalty
from tests.decoding import reference


def numbers(name, alpha, lengths):
    found = np.asarray(length_penalty(name, alpha)(np.asarray(lengths, "int32")))
    assert found.dtype == np.float32
    return found


def test_gnmt_by_hand():
    # (5 + n) / 6 is 1, 2 and 4 for n = 1, 7 and 19 (Wu et al. 2016, equation 14).
    np.testing.assert_allclose(numbers("gnmt", 1.0, [1, 7, 19]), [1.0, 2.0, 4.0], rtol=1e-6)
    np.testing.assert_allclose(numbers("gnmt", 0.5, [1, 7, 19]), [1.0, 2**0.5, 2.0], rtol=1e-6)


def test_power_by_hand():
    np.testing.assert_allclose(numbers("power", 1.0, [1, 2, 9]), [1.0, 2.0, 9.0], rtol=1e-6)
    np.testing.assert_allclose(numbers("power", 0.5, [1, 4, 9]), [1.0, 2.0, 3.0], rtol=1e-6)


@pytest.mark.parametrize("penalty", ["gnmt", "power"])
def test_alpha_zero_is_no_penalty(penalty):
    np.testing.assert_array_equal(numbers(penalty, 0.0, [1, 2, 100]), [1.0, 1.0, 1.0])


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 1.7])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 4)])
def test_any_shape(alpha, shape):
    lengths = np.arange(1, 1 + int(np.prod(shape)), dtype="int32").reshape(shape)
    for name, expected in (
        ("gnmt", reference.gnmt_penalty(alpha)),
        ("power", reference.power_penalty(alpha)),
    ):
        values = np.vectorize(expected, otypes=[np.float64])(lengths) if lengths.size else lengths
        np.testing.assert_allclose(numbers(name, alpha, lengths), values, rtol=1e-5)
        assert numbers(name, alpha, lengths).shape == shape

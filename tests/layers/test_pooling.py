import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert.layers.pooling import TokenPooling, pool
from tests.check_layer import check_layer


@given(st.data())
def test_padding_is_not_read(data):
    shape = (3, 4, 2)
    states = data.draw(hnp.arrays("float32", shape, elements=st.floats(-9, 9, width=32)))
    mask = data.draw(hnp.arrays(bool, shape[:2]))
    mask[:, 0] = True
    undefined = np.where(mask[..., None], states, np.float32("nan"))
    for pooling, function in (("mean", np.mean), ("max", np.max)):
        expected = [function(row[real], axis=0) for row, real in zip(states, mask)]
        np.testing.assert_allclose(pool(undefined, mask, pooling), expected, atol=1e-5)
        whole = function(states, axis=1)
        np.testing.assert_allclose(pool(states, None, pooling), whole, atol=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_a_row_without_tokens_is_0(pooling):
    found = pool(np.ones((1, 2, 3), "float32"), np.zeros((1, 2), bool), pooling)
    np.testing.assert_array_equal(found, np.zeros((1, 3)))


@pytest.mark.parametrize("dtype, value", [("float16", 150.0), ("bfloat16", 3.0)])
def test_the_mean_of_a_long_text_in_half_precision(dtype, value):
    states = np.full((1, 512, 2), value, "float32")
    real = np.arange(512)[None] < 301  # bfloat16 has no 301
    states[0, 0] += 301.0
    found = TokenPooling("mean", dtype=f"mixed_{dtype}")(states, real)
    assert found.dtype == dtype
    np.testing.assert_array_equal(np.asarray(found, "float32"), [[value + 1.0] * 2])


def test_the_layer():
    states = np.array([[[1.0, -5.0], [3.0, -7.0], [9.0, 9.0]]], "float32")
    real = np.array([[True, True, False]])
    np.testing.assert_allclose(TokenPooling("mean")(states, real), [[2.0, -6.0]])
    np.testing.assert_allclose(TokenPooling("max")(states, padding_mask=real), [[3.0, -5.0]])
    np.testing.assert_allclose(TokenPooling("max")(states), [[9.0, 9.0]])
    check_layer(TokenPooling, {"pooling": "max"}, states, (1, 2), 0)
    with pytest.raises(ValueError, match=r"`pooling` must be one of .*Received: pooling='sum'"):
        TokenPooling("sum")

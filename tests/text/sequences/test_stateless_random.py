"""Random numbers of rows, against a plain reading of the paper."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from kbert.text.sequences.stateless_random import (
    random_bits,
    random_index,
    random_uniform,
    row_seeds,
)

MASK = 2**64 - 1


def splitmix64(seed: int, index: int) -> int:
    """Number `index` of SplitMix64, in whole numbers as the paper has it."""
    z = (seed + (index + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def test_the_published_numbers_for_a_seed():
    """The first five of seed 1234567, as rosettacode.org lists them for SplitMix64."""
    found = random_bits(tf.constant([1234567], tf.int64), tf.range(5))
    assert found.numpy().tolist() == [
        [
            6457827717110365317,
            3203168211198807973,
            9817491932198370423,
            4593380528125082431,
            16408922859458223821,
        ]
    ]


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=4),
    st.lists(st.integers(0, 2**30), min_size=1, max_size=4),
)
def test_any_seed_and_index(seeds, index):
    expected = [[splitmix64(seed & MASK, i) for i in index] for seed in seeds]
    rows = tf.constant(seeds, tf.int64)
    np.testing.assert_array_equal(random_bits(rows, tf.constant(index)), np.uint64(expected))
    uniform = np.array(expected, "object") // 2**40 / 2**24
    np.testing.assert_array_equal(random_uniform(rows, tf.constant(index)), uniform.astype("f4"))
    drawn = [[number // 2 % 7 for number in row] for row in expected]
    np.testing.assert_array_equal(random_index(rows, tf.constant(index), 7), drawn)


def test_each_row_may_ask_for_other_numbers():
    rows = tf.constant([5, 6], tf.int64)
    some = random_bits(rows, tf.constant([[3, 1], [0, 2]])).numpy()
    both = random_bits(rows, tf.range(4)).numpy()
    assert some.tolist() == [[both[0, 3], both[0, 1]], [both[1, 0], both[1, 2]]]


def test_numbers_are_uniform_and_rows_do_not_resemble_each_other():
    """A million numbers; the limits are five standard deviations of true randomness."""
    seeds = tf.constant(row_seeds(1, 2, count=1000))
    uniform = random_uniform(seeds, tf.range(1000)).numpy().astype("float64")
    assert 0 <= uniform.min() and uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 5 * np.sqrt(1 / 12 / 1e6)
    counts = np.histogram(uniform, 100, (0, 1))[0]
    assert abs(counts - 1e4).max() < 5 * np.sqrt(1e4)
    for one, other in ((uniform[:-1], uniform[1:]), (uniform[:, :-1], uniform[:, 1:])):
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 5 / 1e3


def test_seeds_of_rows():
    seeds = row_seeds(7, 0, 3, count=5)
    assert seeds.dtype == np.int64 and len(set(seeds.tolist())) == 5
    assert row_seeds(7, 0, 3, count=2).tolist() == seeds[:2].tolist()
    assert not set(row_seeds(7, 1, 3, count=5).tolist()) & set(seeds.tolist())
    assert row_seeds(7, count=0).tolist() == []
    # They are the numbers of SplitMix64 begun where NumPy's SeedSequence says.
    base = int(np.random.SeedSequence((7, 0, 3)).generate_state(1, np.uint64)[0])
    assert [seed & MASK for seed in seeds.tolist()] == [splitmix64(base, i) for i in range(5)]


def test_negative_numbers_name_no_row():
    with pytest.raises(ValueError, match="non-negative"):
        row_seeds(-1, count=1)

"""Stateless random numbers for each example, as graph code.

The numbers of an example depend on its own seed alone, not on batch composition, on the worker that
makes it or on what was drawn before: each has an index and is computed from seed and index.

They are those of SplitMix64 started with the seed of the example: Steele, Lea and Flood, "Fast
splittable pseudorandom number generators", OOPSLA 2014, figure 16 (`mix64` is variant 13 of
Stafford's finalizers, as in Java's SplittableRandom).
"""

import numpy as np
import tensorflow as tf

_GOLDEN = 0x9E3779B97F4A7C15
# Shift and multiplier of each step.
_MIXING = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))


def random_bits(seeds: tf.Tensor, index: tf.Tensor) -> tf.Tensor:
    """Returns the numbers at `index` of the random sequences of `seeds`, int64 (B,).

    Indices are int32 or int64 (K,), the same for all examples, or (B, K), and count from 0. The
    numbers are uint64 (B, K), all bits random.
    """
    steps = tf.cast(index, tf.uint64) + tf.constant(1, tf.uint64)
    state = tf.bitcast(seeds, tf.uint64)[:, tf.newaxis] + steps * tf.constant(_GOLDEN, tf.uint64)
    for shift, multiplier in _MIXING:
        shifted = tf.bitwise.right_shift(state, tf.constant(shift, tf.uint64))
        state = tf.bitwise.bitwise_xor(state, shifted) * tf.constant(multiplier, tf.uint64)
    return state


def random_uniform(seeds: tf.Tensor, index: tf.Tensor) -> tf.Tensor:
    """Returns uniform numbers of [0, 1), float32 (B, K), for the arguments of `random_bits`."""
    # 24 bits fit float32.
    bits = tf.bitwise.right_shift(random_bits(seeds, index), tf.constant(40, tf.uint64))
    return tf.cast(bits, tf.float32) * tf.constant(2.0**-24)


def random_index(seeds: tf.Tensor, index: tf.Tensor, size: int) -> tf.Tensor:
    """Returns integers from 0 to `size` - 1, at most 2^31, int32 (B, K); see `random_bits`."""
    # Of 2^63 numbers the remainder prefers none by more than 2^-32.
    bits = tf.bitwise.right_shift(random_bits(seeds, index), tf.constant(1, tf.uint64))
    return tf.cast(tf.cast(bits, tf.int64) % size, tf.int32)


def row_seeds(*numbers: int, count: int) -> np.ndarray:
    """Returns seeds for examples, int64 (count,), from numbers such as seed, epoch and block.

    Each is a pure function of the numbers, of at least 0, and of the example's index.
    """
    (base,) = np.random.SeedSequence(numbers).generate_state(1, np.uint64)
    state = base + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_GOLDEN)
    for shift, multiplier in _MIXING:
        state = (state ^ (state >> np.uint64(shift))) * np.uint64(multiplier)
    return state.view(np.int64)

"""The values beside each value, by hand."""

import tensorflow as tf

from kbert.text.byte_level_bpe.neighbours import following, previous


def test_values_beside_each_one() -> None:
    values = tf.constant([1, 2, 3])
    assert previous(values, 7).numpy().tolist() == [7, 1, 2]
    assert following(values, 7).numpy().tolist() == [2, 3, 7]
    assert following(tf.constant([], tf.bool), False).shape == (0,)

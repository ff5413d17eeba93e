"""The values before and after each value of a tensor."""

import tensorflow as tf


def previous(values: tf.Tensor, first: int | bool) -> tf.Tensor:
    """Returns the value before each one of (n,), and `first` before the first one."""
    return tf.concat([tf.cast([first], values.dtype), values], axis=0)[:-1]


def following(values: tf.Tensor, last: int | bool) -> tf.Tensor:
    """Returns the value after each one of (n,), and `last` after the last one."""
    return tf.concat([values, tf.cast([last], values.dtype)], axis=0)[1:]

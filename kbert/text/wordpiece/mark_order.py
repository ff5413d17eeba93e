"""The one step of NFD that looks at neighbours: runs of combining marks are sorted."""

import tensorflow as tf


def in_canonical_order(
    values: tf.Tensor, row_splits: tf.Tensor, classes: tf.Tensor
) -> tf.Tensor:
    """Sort each run of marks by combining class, equal classes as they stood.

    Marks that stripping drops are gone already; the reference drops them after sorting. So where a
    run mixed both kinds its offsets may leave out a mark at the word's edge, and ours do not; and a
    dropped mark of class 0 (some vowel signs) ends a run there, and not here.

    Source: Unicode Standard Annex 15, canonical ordering algorithm.

    Args:
        values: Code points of all rows, int32 (n,).
        row_splits: int64 (rows + 1,). Runs end with their row.
        classes: Canonical combining class of each, 0 for what ends a run, int32 (n,).

    Returns:
        The code points in order, int32 (n,).
    """
    size = tf.size(values, tf.int64)
    row_starts = tf.scatter_nd(row_splits[:, tf.newaxis], tf.ones_like(row_splits), [size + 1])
    run = tf.cumsum(tf.cast(tf.equal(classes, 0), tf.int64) + row_starts[:-1])
    # Combining classes are below 256, and a code point of class 0 is the first of its run.
    order = tf.argsort(run * 256 + tf.cast(classes, tf.int64), stable=True)
    return tf.gather(values, order)

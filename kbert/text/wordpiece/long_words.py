"""The reference's limit on a word's length, kept in code points."""

import tensorflow as tf

MAX_CHARACTERS_PER_WORD = 100
_SPACE = 0x20


def shortened(
    values: tf.Tensor, row_splits: tf.Tensor, position: tf.Tensor, filler: int
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Replace each word of more than 100 code points by two `filler`s: its first, its last place.

    Two, so that the token which is made of them still begins and ends where the word did.

    Args:
        values: Code points of all rows, words between spaces, int32 (n,).
        row_splits: int64 (rows + 1,).
        position: Any number for each code point, (n,); the kept ones are returned.
        filler: The code point to write.

    Returns:
        `values`, `row_splits` and `position` of what is left.
    """
    size = tf.size(values, tf.int64)
    is_letter = tf.not_equal(values, _SPACE)
    row_starts = tf.scatter_nd(row_splits[:, tf.newaxis], tf.ones_like(row_splits), [size + 1]) > 0
    is_first = is_letter & (row_starts[:-1] | tf.concat([[True], ~is_letter[:-1]], axis=0))
    is_last = is_letter & (row_starts[1:] | tf.concat([~is_letter[1:], [True]], axis=0))
    firsts = tf.where(is_first)[:, 0]
    word_lengths = tf.where(is_last)[:, 0] - firsts + 1
    # Words count from 1 here; 0 is the space before the first of them.
    word = tf.cumsum(tf.cast(is_first, tf.int64))
    is_too_long = tf.concat([[False], word_lengths > MAX_CHARACTERS_PER_WORD], axis=0)
    is_long = is_letter & tf.gather(is_too_long, word)
    kept = ~is_long | is_first | is_last
    kept_before = tf.cumsum(tf.cast(kept, tf.int64))
    return (
        tf.boolean_mask(tf.where(is_long, filler, values), kept),
        tf.gather(tf.concat([[0], kept_before], axis=0), row_splits),
        tf.boolean_mask(position, kept),
    )

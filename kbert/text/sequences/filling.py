"""Filling of [MASK] tokens in a text with words."""

import tensorflow as tf

from kbert.text.wordpiece.vocabulary import MASK

_CONTINUED = "##"


def filled(text: tf.Tensor, words: tf.RaggedTensor) -> tf.Tensor:
    """Replaces each "[MASK]" by a word, as graph code.

    A continuation piece, "##ing", is joined to what precedes it, also across white space.

    Args:
        text: string (B,).
        words: string (B, (n)), one for each "[MASK]" of a text in order.

    Returns:
        string (B,).
    """
    pieces = tf.strings.split(tf.reshape(text, (-1,)), MASK)  # (B, (n + 1))
    row = pieces.value_rowids()
    number = tf.range(tf.size(row, tf.int64)) - tf.gather(pieces.row_starts(), row)
    # One more word, an empty one, after the last piece of each text.
    padded = tf.concat([words, tf.fill((words.nrows(), 1), "")], axis=1)
    place = tf.gather(padded.row_starts(), row) + tf.minimum(
        number, tf.gather(padded.row_lengths(), row) - 1
    )
    word = tf.gather(padded.values, place)
    is_rest = tf.strings.regex_full_match(word, f"{_CONTINUED}.+")
    before = tf.strings.regex_replace(pieces.values, r"\s+$", "")
    rest = tf.strings.regex_replace(word, f"^{_CONTINUED}", "")
    joined = tf.where(
        is_rest, tf.strings.join([before, rest]), tf.strings.join([pieces.values, word])
    )
    return tf.strings.reduce_join(pieces.with_values(joined), axis=-1)

"""Texts cut into words as GPT-2 cuts them, as a graph.

The pattern is `'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+`:
a word holds the space before it, and of a longer run of white space all but the last character.
Source: Radford et al. 2019, "GPT-2", `encoder.py`.

Shapes: R rows, W words, m code points.
"""

import tensorflow as tf

from kbert.text.byte_level_bpe.code_point_classes import (
    PAGE_BITS,
    PAGE_SIZE,
    WHITE,
    class_table,
)
from kbert.text.byte_level_bpe.neighbours import following, previous
from kbert.text.byte_level_bpe.regex_split import regex_split
from kbert.text.wordpiece.normalizer import decode

_SPACE = 0x20
_APOSTROPHE = 0x27
# Rows that RE2 cuts as the pattern does, although it has no look-ahead: ASCII, where no run of
# white space is of three characters, or of two at the end; and without U+0000, at which
# tensorflow-text's op stops.
_SIMPLE_ROW = r"(?:[\t-\r ]{0,2}[\x01-\x08\x0e-\x1f!-\x7f])*[\t-\r ]?"
# In an order in which the next byte alone tells how the match goes on, and anchored: RE2 has a
# matcher for such patterns that is ten times as fast. "'" and "'s" are read together, therefore.
_SYMBOL = r"[\x01-\x08\x0e-\x1f!-&(-/:-@\[-`{-\x7f]"
_SYMBOLS = rf"(?:{_SYMBOL}|')*"
_SIMPLE_WORD = (
    rf"\A(?: (?:[A-Za-z]+|[0-9]+|(?:{_SYMBOL}|')+)?|[A-Za-z]+|[0-9]+|{_SYMBOL}{_SYMBOLS}"
    rf"|'(?:[stmd]|re|ve|ll|{_SYMBOLS})|[\t-\r])"
)
_NOTHING_KEPT = "(x)"


class WordSplitter:
    """Cuts rows into words; its tables live in the graph as constants."""

    def __init__(self) -> None:
        table = class_table()
        # Eager constants: every graph that uses them captures the same ones. On the CPU, where the
        # string kernels are, otherwise a machine with a GPU would copy them at each call.
        with tf.init_scope(), tf.device("CPU:0"):
            self._page_starts = tf.constant(table.page_starts)
            self._entries = tf.constant(table.entries)
        # Not inlined: a branch that is not taken then costs one node, not all of them.
        self._mixed = tf.function(
            self._split_mixed,
            autograph=False,
            experimental_attributes={"_noinline": True},
            input_signature=[tf.TensorSpec([None], tf.string), tf.TensorSpec([None], tf.bool)],
        )

    def split(self, rows: tf.Tensor) -> tf.RaggedTensor:
        """Returns the words of rows, string (R,), as a ragged string (R, (words)).

        Joined, the words of a row are the row; bytes that are not UTF-8 are U+FFFD then, like those
        of `bytes.decode("utf-8", "replace")`.
        """
        is_simple = tf.strings.regex_full_match(rows, _SIMPLE_ROW)
        values, row_splits = tf.cond(
            tf.reduce_all(is_simple),
            lambda: _flat(_split_simple(rows)),
            lambda: self._mixed(rows, is_simple),
        )
        values.set_shape([None])  # a function that is not inlined has none
        row_splits.set_shape([None])
        return tf.RaggedTensor.from_row_splits(values, row_splits, validate=False)

    def _split_mixed(self, rows: tf.Tensor, is_simple: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        simple, other = tf.where(is_simple)[:, 0], tf.where(~is_simple)[:, 0]
        words = tf.concat(
            [_split_simple(tf.gather(rows, simple)), self._split_any(tf.gather(rows, other))],
            axis=0,
        )
        place = tf.math.invert_permutation(tf.concat([simple, other], axis=0))
        return _flat(tf.gather(words, place))

    def _split_any(self, rows: tf.Tensor) -> tf.RaggedTensor:
        """Cuts any rows: by the class of each code point and of its neighbours."""
        decoded = decode(rows)
        points, row_splits = decoded.points, decoded.row_splits
        page = tf.gather(self._page_starts, tf.bitwise.right_shift(points, PAGE_BITS))
        kind = tf.gather(self._entries, page + tf.bitwise.bitwise_and(points, PAGE_SIZE - 1))
        total = tf.size(points, tf.int64)
        edges = tf.scatter_nd(row_splits[:, tf.newaxis], tf.ones_like(row_splits), [total + 1]) > 0
        is_first, is_last = edges[:-1], edges[1:]
        is_white = tf.equal(kind, WHITE)
        follows_white = ~is_first & previous(is_white, False)
        precedes_word = ~is_last & ~following(is_white, False)
        goes_on = ~is_first & (
            tf.equal(kind, previous(kind, -1)) | tf.equal(previous(points, -1), _SPACE)
        )
        begins = tf.where(is_white, ~follows_white | precedes_word, ~goes_on)
        begins = _with_contractions(begins, points, edges)
        splits = tf.concat([tf.where(begins)[:, 0], [total]], axis=0)
        words = tf.raw_ops.UnicodeEncode(
            input_values=points, input_splits=splits, output_encoding="UTF-8"
        )
        words_before = tf.concat([[0], tf.cumsum(tf.cast(begins, tf.int64))], axis=0)
        return tf.RaggedTensor.from_row_splits(
            words, tf.gather(words_before, row_splits), validate=False
        )


def _split_simple(rows: tf.Tensor) -> tf.RaggedTensor:
    # Words as what stands between delimiters, which are nothing at the end of each: a delimiter
    # that is a word would be matched again, to see whether it is kept.
    return regex_split(rows, f"{_SIMPLE_WORD}()", _NOTHING_KEPT)


def _flat(words: tf.RaggedTensor) -> tuple[tf.Tensor, tf.Tensor]:
    return words.values, words.row_splits


def _with_contractions(begins: tf.Tensor, points: tf.Tensor, edges: tf.Tensor) -> tf.Tensor:
    """Makes 's, 't, 'm, 'd, 're, 've and 'll words of their own, where an apostrophe begins a word.

    `begins` is bool (m,), where words begin else; `edges` bool (m + 1,), where rows begin and end.
    """
    at = tf.where(begins & tf.equal(points, _APOSTROPHE))[:, 0]
    padded = tf.concat([points, [0, 0]], axis=0)
    ends = tf.concat([edges, [True, True]], axis=0)
    first, second = (tf.gather(padded, at + step) for step in (1, 2))
    has_first = ~tf.gather(ends, at + 1)
    has_second = has_first & ~tf.gather(ends, at + 2)

    def is_letter(letter: str, points: tf.Tensor) -> tf.Tensor:
        return tf.equal(points, ord(letter))

    is_short = tf.reduce_any([is_letter(letter, first) for letter in "stmd"], axis=0) & has_first
    is_long = has_second & (
        ((is_letter("r", first) | is_letter("v", first)) & is_letter("e", second))
        | (is_letter("l", first) & is_letter("l", second))
    )
    inside = tf.boolean_mask(at, is_short | is_long) + 1
    after = tf.concat([tf.boolean_mask(at, is_short) + 2, tf.boolean_mask(at, is_long) + 3], axis=0)
    after = tf.boolean_mask(after, after < tf.size(points, tf.int64))
    begins = tf.tensor_scatter_nd_update(begins, inside[:, tf.newaxis], tf.zeros_like(inside, bool))
    return tf.tensor_scatter_nd_update(begins, after[:, tf.newaxis], tf.ones_like(after, bool))

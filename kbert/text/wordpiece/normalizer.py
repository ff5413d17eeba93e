"""The reference's normalizer as a graph, and the offsets of its output in the original text.

It decodes, looks each code point up in a table, and encodes. Offsets are in bytes and code points.
"""

from typing import NamedTuple

import tensorflow as tf

from kbert.text.wordpiece.code_point_table import (
    NUM_ORDERED_CODES,
    PAGE_BITS,
    PAGE_SIZE,
    UNKNOWN_LETTER,
    CodePointTable,
)
from kbert.text.wordpiece.normalization import SPACE

MAX_CHARACTERS_PER_WORD = 100
# Normalized rows for which single code points do not suffice: marks that NFD may sort, and words
# that are too long. One pass of an automaton; both are rare.
_NEEDS_CARE = (
    rf"(?s).*(?:[\x{{{UNKNOWN_LETTER + 1:X}}}-\x{{{UNKNOWN_LETTER + NUM_ORDERED_CODES - 1:X}}}]"
    rf"|[^ ]{{{MAX_CHARACTERS_PER_WORD + 1}}}).*"
)


class NormalizedText(NamedTuple):
    """Rows of normalized code points, and their positions in the original text."""

    strings: tf.Tensor  # The rows as UTF-8, words between spaces, string (rows,)
    values: tf.Tensor  # Their code points, concatenated, int32 (n,)
    row_splits: tf.Tensor  # int64 (rows + 1,)
    position: tf.Tensor  # Index of each code point in the table's output, int64 (n,)
    # `position` p came from the code point s of all rows' text for which `source_splits[s] <= p <
    # source_splits[s + 1]`, int64 (code points of the text + 1,).
    source_splits: tf.Tensor


class Normalizer:
    """Looks every code point up in a `CodePointTable`, which lives in the graph as constants."""

    def __init__(self, table: CodePointTable) -> None:
        # Eager constants: every graph that uses them captures the same ones. On the CPU, where the
        # string kernels are, otherwise a machine with a GPU would copy them at each call.
        with tf.init_scope(), tf.device("CPU:0"):
            self._page_starts = tf.constant(table.page_starts)
            self._entries = tf.constant(table.entries)
            self._splits = tf.constant(table.splits)
            self._values = tf.constant(table.values)
            self._ordering_classes = tf.constant(table.ordering_classes)
        # Not inlined: a branch that is not taken then costs one node, not all of them.
        self._care = tf.function(
            self._ordered_and_shortened,
            autograph=False,
            experimental_attributes={"_noinline": True},
            input_signature=[tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.int64)],
        )

    def normalize(self, points: tf.Tensor, row_splits: tf.Tensor) -> NormalizedText:
        """Normalizes rows to words between spaces, none longer than the reference allows.

        `points` are the code points of all rows, concatenated, int32 (m,), and `row_splits` int64
        (rows + 1,).
        """
        page = tf.gather(self._page_starts, tf.bitwise.right_shift(points, PAGE_BITS))
        entry = tf.gather(self._entries, page + tf.bitwise.bitwise_and(points, PAGE_SIZE - 1))
        looked_up = tf.raw_ops.RaggedGather(
            params_nested_splits=[self._splits],
            params_dense_values=self._values,
            indices=entry,
            OUTPUT_RAGGED_RANK=1,
        )
        source_splits, values = looked_up.output_nested_splits[0], looked_up.output_dense_values
        values.set_shape([None])  # RaggedGather does not infer it
        row_splits = tf.gather(source_splits, row_splits)
        strings = _encoded(values, row_splits)

        def as_looked_up() -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
            # Made here: a graph that asks for strings alone then makes no positions.
            position = tf.range(tf.size(values, tf.int64), dtype=tf.int64)
            return strings, values, row_splits, position

        found = tf.cond(
            tf.reduce_any(tf.strings.regex_full_match(strings, _NEEDS_CARE)),
            lambda: self._care(values, row_splits),
            as_looked_up,
        )
        strings, values, row_splits, position = found
        return NormalizedText(strings, values, row_splits, position, source_splits)

    def _ordered_and_shortened(
        self, values: tf.Tensor, row_splits: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
        """Sorts runs of marks and shortens long words: all of `NormalizedText` but the sources."""
        code = values - UNKNOWN_LETTER
        is_ordered = (code > 0) & (code < NUM_ORDERED_CODES)
        classes = tf.gather(self._ordering_classes, tf.where(is_ordered, code, 0))
        values = in_canonical_order(values, row_splits, classes)
        # A run keeps its positions: the first mark of the sorted run gets that of the run's start.
        # The reference counts so, and the end of a token is never before its start.
        position = tf.range(tf.size(values, tf.int64), dtype=tf.int64)
        values, row_splits, position = shortened(values, row_splits, position, UNKNOWN_LETTER)
        return _encoded(values, row_splits), values, row_splits, position


def _encoded(values: tf.Tensor, row_splits: tf.Tensor) -> tf.Tensor:
    return tf.raw_ops.UnicodeEncode(
        input_values=values, input_splits=row_splits, output_encoding="UTF-8"
    )


def in_canonical_order(values: tf.Tensor, row_splits: tf.Tensor, classes: tf.Tensor) -> tf.Tensor:
    """Sorts each run of marks by combining class, stably.

    `values` are the code points of all rows, int32 (n,), `row_splits` int64 (rows + 1,), where runs
    end too, and `classes` the canonical combining classes, int32 (n,), 0 for what ends a run.

    Marks that stripping drops are gone already; the reference drops them after sorting. So where a
    run mixed both kinds its offsets may leave out a mark at the word's edge, and ours do not; and a
    dropped mark of class 0 (some vowel signs) ends a run there, but not here.

    Source: Unicode Standard Annex 15, canonical ordering algorithm.
    """
    row_starts = _row_starts(values, row_splits)[:-1]
    run = tf.cumsum(tf.cast(tf.equal(classes, 0), tf.int64) + row_starts)
    # Combining classes are below 256, and a code point of class 0 is the first of its run.
    order = tf.argsort(run * 256 + tf.cast(classes, tf.int64), stable=True)
    return tf.gather(values, order)


def shortened(
    values: tf.Tensor, row_splits: tf.Tensor, position: tf.Tensor, filler: int
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Replaces each word of more than 100 code points by two `filler`s, at its first and last one.

    Two, so that the token made of them still begins and ends where the word did. `values` are the
    code points of all rows, words between spaces, int32 (n,), `row_splits` int64 (rows + 1,), and
    `position` any number for each code point, (n,); all three are returned.
    """
    is_letter = tf.not_equal(values, SPACE)
    row_starts = _row_starts(values, row_splits) > 0
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


def _row_starts(values: tf.Tensor, row_splits: tf.Tensor) -> tf.Tensor:
    """Returns how many rows start at each of the n values and after the last, int64 (n + 1,)."""
    shape = [tf.size(values, tf.int64) + 1]
    return tf.scatter_nd(row_splits[:, tf.newaxis], tf.ones_like(row_splits), shape)


class DecodedText(NamedTuple):
    """Rows decoded from UTF-8."""

    points: tf.Tensor  # Code points of all rows, concatenated, int32 (m,)
    row_splits: tf.Tensor  # int64 (rows + 1,)
    first_byte: tf.Tensor  # First byte of each code point in its row, int64 (m,)
    row_bytes: tf.Tensor  # Bytes of each row, int32 (rows,)


def decode(text: tf.Tensor) -> DecodedText:
    """Decodes rows, string (rows,), like `bytes.decode("utf-8", "replace")`."""
    decoded = tf.raw_ops.UnicodeDecodeWithOffsets(
        input=text, input_encoding="UTF-8", errors="replace", Tsplits=tf.int64
    )
    return DecodedText(
        points=decoded.char_values,
        row_splits=decoded.row_splits,
        first_byte=decoded.char_to_byte_starts,
        row_bytes=tf.strings.length(text),
    )


def original_offsets(
    token_row: tf.Tensor,
    start: tf.Tensor,
    end: tf.Tensor,
    normalized: NormalizedText,
    decoded: DecodedText,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Maps tokens of normalized rows back to offsets in the original rows.

    All are int64 (k,): the row of each of the k tokens, its first byte and the byte after its last
    in the normalized row; start_byte, end_byte, start and end of `TokenOffsets` are returned.
    """
    points = normalized.values
    longer = [tf.cast(points >= bound, tf.int64) for bound in (0x80, 0x800, 0x10000)]
    bytes_before = tf.concat([[0], tf.cumsum(1 + tf.add_n(longer))], axis=0)
    row_byte = tf.gather(tf.gather(bytes_before, normalized.row_splits), token_row)

    def source_of(byte: tf.Tensor) -> tf.Tensor:
        """Returns the code point of the original text behind a byte of the normalized text."""
        index = tf.searchsorted(bytes_before, row_byte + byte, side="right", out_type=tf.int64) - 1
        position = tf.gather(normalized.position, index)
        splits = normalized.source_splits
        return tf.searchsorted(splits, position, side="right", out_type=tf.int64) - 1

    first, last = source_of(start), source_of(end - 1)
    row_start = tf.gather(decoded.row_splits, token_row)
    is_row_end = tf.equal(last + 1, tf.gather(decoded.row_splits, token_row + 1))
    row_bytes = tf.cast(tf.gather(decoded.row_bytes, token_row), tf.int64)
    following = tf.minimum(last + 1, tf.size(decoded.points, tf.int64) - 1)
    return (
        tf.gather(decoded.first_byte, first),
        tf.where(is_row_end, row_bytes, tf.gather(decoded.first_byte, following)),
        first - row_start,
        last + 1 - row_start,
    )

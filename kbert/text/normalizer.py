"""The reference's normalizer as a graph: decode, one table look-up a code point, encode."""

from typing import NamedTuple

import tensorflow as tf

from kbert.text.code_point_table import (
    NUM_ORDERED_CODES,
    PAGE_BITS,
    PAGE_SIZE,
    UNKNOWN_LETTER,
    CodePointTable,
)
from kbert.text.long_words import has_long_runs, shortened
from kbert.text.mark_order import in_canonical_order


class NormalizedText(NamedTuple):
    """Rows of normalized code points, and where they came from.

    Attributes:
        values: Code points of all rows side by side, int32 (n,).
        row_splits: int64 (rows + 1,).
        position: Place of each in the table's output, int64 (n,).
        source_splits: `position` p came from the code point s of all rows' text for which
            `source_splits[s] <= p < source_splits[s + 1]`, int64 (code points of the text + 1,).
    """

    values: tf.Tensor
    row_splits: tf.Tensor
    position: tf.Tensor
    source_splits: tf.Tensor

    def strings(self) -> tf.Tensor:
        """The rows as UTF-8, string (rows,)."""
        return tf.raw_ops.UnicodeEncode(
            input_values=self.values, input_splits=self.row_splits, output_encoding="UTF-8"
        )


class Normalizer:
    """Looks every code point up in a `CodePointTable`.

    The table lives in the graph as constants: no resource, no asset.

    Args:
        table: The table of a vocabulary.
    """

    def __init__(self, table: CodePointTable) -> None:
        with tf.init_scope():  # eager constants: every graph that uses them captures the same ones
            self._page_starts = tf.constant(table.page_starts)
            self._entries = tf.constant(table.entries)
            self._splits = tf.constant(table.splits)
            self._values = tf.constant(table.values)
            self._ordering_classes = tf.constant(table.ordering_classes)
        self._orders_marks = bool(table.ordering_classes.any())

    def normalize(self, points: tf.Tensor, row_splits: tf.Tensor) -> NormalizedText:
        """Normalize rows of code points.

        Args:
            points: Code points of all rows side by side, int32 (m,).
            row_splits: int64 (rows + 1,).

        Returns:
            The normalized rows: words between spaces, none longer than the reference allows.
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
        values.set_shape([None])  # RaggedGather does not say so
        row_splits = tf.gather(source_splits, row_splits)
        position = tf.range(tf.size(values, tf.int64), dtype=tf.int64)
        if self._orders_marks:
            values, position = self._with_ordered_marks(values, row_splits, position)
        values, row_splits, position = tf.cond(
            has_long_runs(values),
            lambda: shortened(values, row_splits, position, UNKNOWN_LETTER),
            lambda: (values, row_splits, position),
        )
        return NormalizedText(values, row_splits, position, source_splits)

    def _with_ordered_marks(
        self, values: tf.Tensor, row_splits: tf.Tensor, position: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Sort runs of marks, in the rare batch that has any which stripping keeps."""
        code = values - UNKNOWN_LETTER
        is_ordered = (code > 0) & (code < NUM_ORDERED_CODES)

        def sort() -> tuple[tf.Tensor, tf.Tensor]:
            classes = tf.gather(self._ordering_classes, tf.where(is_ordered, code, 0))
            return in_canonical_order(values, row_splits, classes)

        return tf.cond(tf.reduce_any(is_ordered), sort, lambda: (values, position))

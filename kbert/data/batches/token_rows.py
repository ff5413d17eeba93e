"""Texts as rows of token ids, one after the other, without padding.

Shapes: B rows, T tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.data.batches.dataset import mapped_columns
from kbert.data.batches.packed_examples import PackedExamples
from kbert.data.batches.text_tensor import text_tensor
from kbert.text.cached_graph import cached_graph
from kbert.text.subword.subword import Subword

_TEXTS_PER_CALL = 512


@dataclass(frozen=True)
class TokenRows:
    """Token ids of n texts, each with the end token, one after the other.

    Attributes:
        token_ids: int32 (tokens of all texts).
        starts: int64 (n,), offset of each text's first token.
        lengths: int32 (n,), tokens of each text, the end token included.
        truncated: bool (n,), whether tokens were cut off.
        start_id: id of the token that a decoder reads first.
        padding_id: id of the padding token.
    """

    token_ids: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    truncated: np.ndarray
    start_id: int
    padding_id: int

    def __len__(self) -> int:
        """Returns the number of texts."""
        return len(self.lengths)


def selected(packed: Any, rows: np.ndarray) -> Any:
    """Returns some of the texts, in an object of the same class.

    Args:
        packed: `TokenRows` or `PackedExamples`.
        rows: int64 (k,), indices of the texts, in the order of the result.
    """
    lengths = packed.lengths[rows]
    starts = np.cumsum(lengths, dtype="int64") - lengths
    cells = np.repeat(packed.starts[rows] - starts, lengths) + np.arange(lengths.sum())
    ids = {
        name: getattr(packed, name)[cells]
        for name in ("token_ids", "segment_ids")
        if hasattr(packed, name)
    }
    truncated = packed.truncated[rows]
    return replace(packed, **ids, starts=starts, lengths=lengths, truncated=truncated)


def as_tensors(packed: Any) -> Any:
    """Returns texts whose columns are tensors, which a graph may read whatever their size.

    NumPy arrays would become constants of the graph, which are limited to 2 GB.

    Args:
        packed: `TokenRows`, `PackedExamples` or None.
    """
    if packed is None:
        return None
    with tf.device("CPU"):
        columns = {
            name: tf.constant(getattr(packed, name)) for name in ("token_ids", "starts", "lengths")
        }
    return replace(packed, **columns)


def token_rows(subwords: Subword, texts: Sequence[Any], max_length: int) -> TokenRows:
    """Tokenizes texts into subwords.

    Args:
        subwords: the tokenizer.
        texts: n str or bytes.
        max_length: the most tokens of a text, the end token included; the rest is cut off.

    Raises:
        TypeError: a text is neither str nor bytes.
    """

    def tokenize(batch: tf.Tensor) -> tuple[tf.Tensor, ...]:
        pieces = subwords.tokenize(batch)
        truncated = pieces.row_lengths() > max_length - 1
        kept = pieces[:, : max_length - 1]
        # A ragged concatenation would check at run time that both sides have as many rows. A token
        # moves by the end tokens of the rows before its own.
        row = kept.value_rowids()
        places = tf.range(tf.size(row, row.dtype)) + row
        ends = tf.fill((tf.size(row, row.dtype) + kept.nrows(),), subwords.end_id)
        ids = tf.tensor_scatter_nd_update(ends, places[:, tf.newaxis], kept.values)
        return ids, tf.cast(kept.row_lengths() + 1, tf.int32), truncated

    graph = cached_graph(subwords, tokenize, [max_length])
    columns = mapped_columns([text_tensor(texts)], graph, 3, _TEXTS_PER_CALL)
    token_ids, lengths, truncated = columns
    starts = np.cumsum(lengths, dtype="int64") - lengths
    return TokenRows(
        token_ids,
        starts,
        lengths,
        truncated.astype(bool),
        subwords.start_id,
        subwords.padding_id,
    )


def padded_rows(
    packed: TokenRows | PackedExamples, rows: tf.Tensor, width: tf.Tensor | int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Pads some texts to a batch, as graph code.

    Args:
        packed: the texts.
        rows: int64 (B,), indices of texts; -1 for a row of padding.
        width: T, the padded length; 0 for the longest of these texts.

    Returns:
        Ids int32 (B, T), and the padding mask, bool (B, T), True for tokens.
    """
    known = tf.maximum(rows, 0)
    lengths = tf.where(rows >= 0, tf.gather(packed.lengths, known), 0)
    longest = tf.reduce_max(lengths)
    columns = tf.range(tf.where(tf.equal(width, 0), longest, width))
    real = columns < lengths[:, None]
    places = tf.gather(packed.starts, known)[:, None] + tf.cast(columns, tf.int64)
    ids = tf.gather(packed.token_ids, tf.where(real, places, 0))
    return tf.where(real, ids, packed.padding_id), real

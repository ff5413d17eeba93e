"""Texts as token ids, one after the other, without padding.

Shapes: B rows, T tokens.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from kbert.data.tables.columns import without_surrogates
from kbert.text.graph_functions import cached_graph
from kbert.text.sequences.packing import pack
from kbert.text.subword import Subword
from kbert.text.tokenizer import Tokenizer

# Lengths of batches on JAX are multiples of this.
WIDTHS = 64
# AutoGraph would find nothing to convert, and takes time.
plain = tf.autograph.experimental.do_not_convert


@dataclass(frozen=True)
class PackedExamples:
    """Examples as token ids, one after the other, without padding."""

    token_ids: np.ndarray  # int32 (tokens of all examples, and possibly of others)
    segment_ids: np.ndarray  # int32, of the same shape: 0 in the first text, 1 in the second
    starts: np.ndarray  # int64 (n,), offset of each example's first token
    lengths: np.ndarray  # int32 (n,), tokens of each example
    truncated: np.ndarray  # bool (n,), whether tokens were cut off
    padding_id: int = 0

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def tokens(self) -> int:
        """The number of tokens of all examples, special ones included."""
        return int(self.lengths.sum())

    def select(self, examples: np.ndarray) -> "PackedExamples":
        """Returns some of the examples; the tokens of the others stay, unreferenced."""
        columns = ("starts", "lengths", "truncated")
        return replace(self, **{name: getattr(self, name)[examples] for name in columns})


@dataclass(frozen=True)
class TokenRows:
    """Token ids of n texts, each with the end token, one after the other."""

    token_ids: np.ndarray  # int32 (tokens of all texts)
    starts: np.ndarray  # int64 (n,), offset of each text's first token
    lengths: np.ndarray  # int32 (n,), tokens of each text, the end token included
    truncated: np.ndarray  # bool (n,), whether tokens were cut off
    start_id: int  # id of the token that a decoder reads first
    padding_id: int

    def __len__(self) -> int:
        return len(self.lengths)


def text_tensor(texts: Sequence[Any]) -> tf.Tensor:
    """Converts texts to a string tensor, in UTF-8; a TypeError if one is neither str nor bytes, as
    None is.

    Lone surrogates, which UTF-8 cannot write, become U+FFFD one by one, so that code points are
    counted as Python counts them.
    """
    encoded = []
    for index, text in enumerate(texts):
        if isinstance(text, str):
            text = without_surrogates(text, f"`texts[{index}]`", "replace").encode()
        elif not isinstance(text, bytes):
            raise TypeError(
                f"`texts` must hold str or bytes only. Received: {text!r} at index {index}"
            )
        encoded.append(text)
    return tf.constant(encoded, dtype=tf.string, shape=(len(encoded),))


def pack_examples(
    tokenizer: Tokenizer,
    text_a: Sequence[Any],
    text_b: Sequence[Any] | None = None,
    max_sequence_length: int = 128,
) -> PackedExamples:
    """Tokenizes texts, or pairs, as `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`, in their order.

    Longer examples are cut to `max_sequence_length`, the longer text of a pair first. A TypeError
    says that a text is neither str nor bytes.
    """
    if text_b is not None and len(text_a) != len(text_b):
        raise ValueError(
            "`text_b` must be as long as `text_a`. "
            f"Received: {len(text_a)} and {len(text_b)} texts"
        )

    def tokenize(*texts: tf.Tensor) -> tuple[tf.Tensor, ...]:
        packed = pack(
            [tokenizer.tokenize(text) for text in texts], tokenizer.vocabulary, max_sequence_length
        )
        columns = (packed.token_ids, packed.segment_ids)
        ids = (tf.boolean_mask(column, packed.padding_mask) for column in columns)
        return *ids, packed.lengths, packed.truncated

    columns = (text_a,) if text_b is None else (text_a, text_b)
    specs = [tf.TensorSpec((None,), tf.string) for _ in columns]
    graph = cached_graph(tokenizer, tokenize, [max_sequence_length], specs)
    tensors = [text_tensor(column) for column in columns]
    token_ids, segment_ids, lengths, truncated = mapped_columns(tensors, graph, 4)
    starts = np.cumsum(lengths, dtype="int64") - lengths
    cut = truncated.astype(bool)
    padding_id = tokenizer.vocabulary.padding_id
    return PackedExamples(token_ids, segment_ids, starts, lengths, cut, padding_id)


def mapped_columns(
    columns: Sequence[tf.Tensor],
    function: Callable[..., tuple[tf.Tensor, ...]],
    count: int,
    rows_per_call: int = 512,
) -> list[np.ndarray]:
    """Maps slices of rows on all cores, and concatenates the results.

    `function` maps slices of the columns, of at most `rows_per_call` rows, to `count` tensors of
    rank 1. Where there are no rows, each result is empty int32.
    """
    rows = len(columns[0])
    if rows == 0:
        return [np.zeros(0, "int32")] * count
    if rows <= rows_per_call:  # a dataset would take longer to start than this to be done
        with tf.device("CPU:0"):
            return [column.numpy() for column in function(*columns)]
    dataset = tf.data.Dataset.from_tensor_slices(tuple(columns)).batch(rows_per_call)
    mapped = steady(dataset.map(plain(function), num_parallel_calls=tf.data.AUTOTUNE))
    return [np.concatenate(column) for column in zip(*mapped.as_numpy_iterator())]


def steady(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Turns off tf.data's autotuning of a dataset.

    The thread that tunes sleeps longer and longer, and the end of a pass waits for it: up to as
    long as the pass took (TensorFlow 2.20).
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)


def token_rows(subwords: Subword, texts: Sequence[Any], max_length: int) -> TokenRows:
    """Tokenizes texts, str or bytes, into subwords.

    `max_length` is the most tokens of a text, the end token included; the rest is cut off.
    """

    def tokenize(batch: tf.Tensor) -> tuple[tf.Tensor, ...]:
        begun, truncated = subwords.beginnings(batch, max_length)
        pieces = subwords.tokenize(begun)
        truncated |= pieces.row_lengths() > max_length - 1
        kept = pieces[:, : max_length - 1]
        # A ragged concatenation would check at run time that both sides have as many rows. A token
        # moves by the end tokens of the rows before its own.
        row = kept.value_rowids()
        places = tf.range(tf.size(row, row.dtype)) + row
        ends = tf.fill((tf.size(row, row.dtype) + kept.nrows(),), subwords.end_id)
        ids = tf.tensor_scatter_nd_update(ends, places[:, tf.newaxis], kept.values)
        return ids, tf.cast(kept.row_lengths() + 1, tf.int32), truncated

    specs = [tf.TensorSpec((None,), tf.string)]
    graph = cached_graph(subwords, tokenize, [max_length], specs)
    token_ids, lengths, truncated = mapped_columns([text_tensor(texts)], graph, 3)
    starts = np.cumsum(lengths, dtype="int64") - lengths
    return TokenRows(
        token_ids, starts, lengths, truncated.astype(bool), subwords.start_id, subwords.padding_id
    )


def selected(packed: Any, rows: np.ndarray) -> Any:
    """Returns some of the texts of `TokenRows` or `PackedExamples`, without the others' tokens."""
    lengths = packed.lengths[rows]
    starts = np.cumsum(lengths, dtype="int64") - lengths
    cells = np.repeat(packed.starts[rows] - starts, lengths) + np.arange(lengths.sum())
    names = [name for name in ("token_ids", "segment_ids") if hasattr(packed, name)]
    ids = {name: getattr(packed, name)[cells] for name in names}
    truncated = packed.truncated[rows]
    return replace(packed, **ids, starts=starts, lengths=lengths, truncated=truncated)


def as_tensors(packed: Any) -> Any:
    """Returns texts whose columns are tensors, which a graph may read whatever their size.

    NumPy arrays would become constants of the graph, which are limited to 2 GB.
    """
    if packed is None:
        return None
    columns = ("token_ids", "segment_ids", "starts", "lengths")
    names = [name for name in columns if hasattr(packed, name)]
    with tf.device("CPU"):
        return replace(packed, **{name: tf.constant(getattr(packed, name)) for name in names})


def few_widths(longest: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """Rounds a batch's longest length up where Keras computes with JAX, at most to that of all.

    JAX compiles a step for each shape of its batches: some seconds, where padding costs little.
    """
    if keras.backend.backend() == "tensorflow":
        return longest
    return tf.minimum(-(-longest // WIDTHS) * WIDTHS, tf.reduce_max(lengths))


def padded_cells(
    packed: TokenRows | PackedExamples, rows: tf.Tensor, width: tf.Tensor | int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Finds the tokens of some texts padded to a batch, as graph code.

    `rows` are indices int64 (B,), -1 for a row of padding; `width` is T, the padded length, 0 for
    the longest of these texts, rounded up on JAX (`few_widths`). Returns int64 (B, T), the place of
    each token in `packed.token_ids`, 0 for padding; and the padding mask, bool (B, T), True for
    tokens.
    """
    known = tf.maximum(rows, 0)
    lengths = tf.where(rows >= 0, tf.gather(packed.lengths, known), 0)
    if not isinstance(width, int) or not width:  # else the shape is known to the graph
        longest = few_widths(tf.reduce_max(lengths), packed.lengths)
        width = tf.where(tf.equal(width, 0), longest, width)
    columns = tf.range(width)
    real = columns < lengths[:, None]
    cells = tf.gather(packed.starts, known)[:, None] + tf.cast(columns, tf.int64)
    return tf.where(real, cells, 0), real


def padded_rows(
    packed: TokenRows | PackedExamples, rows: tf.Tensor, width: tf.Tensor | int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Pads some texts to a batch as `padded_cells` does: ids int32 (B, T), and the padding mask."""
    cells, real = padded_cells(packed, rows, width)
    return tf.where(real, tf.gather(packed.token_ids, cells), packed.padding_id), real

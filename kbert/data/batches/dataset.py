"""From texts to batches: tokenized once, kept without padding, batched by length.

Shapes: B batch, T the longest example of the batch.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.data.batches.epochs import Epochs
from kbert.data.batches.packed_examples import PackedExamples
from kbert.data.batches.plans import batch_plan, random_batches, whole_batches
from kbert.data.batches.text_tensor import text_tensor
from kbert.text.cached_graph import cached_graph
from kbert.text.sequences.packing import pack
from kbert.text.wordpiece.wordpiece import WordPiece

_TEXTS_PER_CALL = 512
# Batches that are prefetched.
_AHEAD = 2
# AutoGraph would find nothing to convert, and takes time.
_plain = tf.autograph.experimental.do_not_convert


def pack_examples(
    tokenizer: WordPiece,
    text_a: Sequence[Any],
    text_b: Sequence[Any] | None = None,
    max_sequence_length: int = 128,
) -> PackedExamples:
    """Tokenizes texts, or pairs of texts, as `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`.

    Args:
        tokenizer: the tokenizer.
        text_a: n str or bytes.
        text_b: n str or bytes, or None.
        max_sequence_length: longer examples are cut, the longer text of a pair first.

    Returns:
        The packed examples, in the order of the texts.

    Raises:
        ValueError: the two sequences differ in length.
        TypeError: a text is neither str nor bytes.
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
        real = packed.padding_mask
        return (
            tf.boolean_mask(packed.token_ids, real),
            tf.boolean_mask(packed.segment_ids, real),
            packed.lengths,
            packed.truncated,
        )

    columns = (text_a,) if text_b is None else (text_a, text_b)
    graph = cached_graph(tokenizer, tokenize, [max_sequence_length])
    tensors = [text_tensor(column) for column in columns]
    found = mapped_columns(tensors, graph, 4, _TEXTS_PER_CALL)
    token_ids, segment_ids, lengths, truncated = found
    starts = np.cumsum(lengths, dtype="int64") - lengths
    return PackedExamples(
        token_ids,
        segment_ids,
        starts,
        lengths,
        truncated.astype(bool),
        tokenizer.vocabulary.padding_id,
    )


def mapped_columns(
    columns: Sequence[tf.Tensor],
    function: Callable[..., tuple[tf.Tensor, ...]],
    count: int,
    rows_per_call: int,
) -> list[np.ndarray]:
    """Maps slices of rows on all cores, and concatenates the results.

    Args:
        columns: tensors with the same number of rows.
        function: maps slices of the columns to `count` tensors of rank 1.
        count: number of results; each is empty int32 where there are no rows.
        rows_per_call: the most rows of a slice.
    """
    rows = len(columns[0])
    if rows == 0:
        return [np.zeros(0, "int32")] * count
    if rows <= rows_per_call:  # a dataset would take longer to start than this to be done
        with tf.device("CPU:0"):
            return [column.numpy() for column in function(*columns)]
    dataset = tf.data.Dataset.from_tensor_slices(tuple(columns)).batch(rows_per_call)
    mapped = steady(dataset.map(_plain(function), num_parallel_calls=tf.data.AUTOTUNE))
    return [np.concatenate(column) for column in zip(*mapped.as_numpy_iterator())]


def steady(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Turns off tf.data's autotuning of a dataset.

    The thread that tunes sleeps longer and longer, and the end of a pass waits for it: up to a
    third of the time that the pass took (TensorFlow 2.20, where all cores were busy).

    Args:
        dataset: any dataset.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)


def read_ahead(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Prefetches batches; without autotuning, see `steady`.

    Args:
        dataset: batches.
    """
    return steady(dataset.prefetch(_AHEAD))


def batched_dataset(
    packed: PackedExamples,
    labels: np.ndarray | None = None,
    sample_weights: np.ndarray | None = None,
    batch_size: int | None = 32,
    batch_tokens: int | None = None,
    shuffle: bool = False,
    seed: int = 0,
    fixed_length: int | None = None,
    token_labels: np.ndarray | None = None,
    first_epoch: int = 0,
    first_batch: int = 0,
    drop_remainder: bool = False,
    parts: int | None = None,
) -> tf.data.Dataset:
    """Returns length-bucketed batches for `fit` and `evaluate`.

    Every pass is one epoch; `shuffle` orders each differently. See `kbert.data.batches.epochs`.

    Args:
        packed: the examples.
        labels: (n, ...) or None.
        sample_weights: float (n,) or None; needs `labels`.
        batch_size: examples a batch, or None.
        batch_tokens: the most positions of a batch, padding included, instead of `batch_size`.
        shuffle: whether batch order and composition depend on seed and epoch.
        seed: seed of the shuffling.
        fixed_length: pad to this length instead of the longest of the batch.
        token_labels: (tokens of all examples, ...) instead of `labels`: ids, whose padding is -1,
            or distributions, whose padding is 0.
        first_epoch: number of the first pass; above 0 where a run is resumed.
        first_batch: batches to skip; such a dataset is the rest of one epoch.
        drop_remainder: leave out batches of fewer examples; needs `batch_size`.
        parts: parts of random batches, for `gradient_accumulation_steps`; see `random_batches`.

    Returns:
        A dataset of inputs {"token_ids", "segment_ids" int32 (B, T), "padding_mask" bool (B, T)},
        or (inputs, labels), or (inputs, labels, weights).

    Raises:
        ValueError: labels or weights are not one an example (or token), weights come without
            labels, or `fixed_length` is too short.
    """
    _check(packed, labels, sample_weights, fixed_length, token_labels)
    extras = [tf.constant(x) for x in (labels, sample_weights) if x is not None]
    gather = _gatherer(packed, fixed_length, token_labels)

    def assemble(rows: tf.Tensor) -> Any:
        inputs, *of_tokens = gather(rows)
        columns = (*of_tokens, *(tf.gather(extra, rows) for extra in extras))
        return (inputs, *columns) if columns else inputs

    epochs = Epochs(first_epoch)
    whole = batch_size if drop_remainder else None
    plan = _planner(packed.lengths, whole, parts, batch_size, batch_tokens, shuffle, seed)
    rows, is_constant = tf.TensorSpec((whole,), tf.int64), not shuffle or batch_size is not None
    dataset = planned_batches(plan, epochs, first_batch, is_constant, rows)
    dataset = read_ahead(dataset.map(_plain(assemble), num_parallel_calls=_AHEAD))
    dataset.epochs = epochs  # `fit` of kbert's models sets their number
    return dataset


def _planner(
    lengths: np.ndarray,
    whole: int | None,
    parts: int | None,
    rows: int | None,
    tokens: int | None,
    shuffle: bool,
    seed: int,
) -> Callable[[int], list[np.ndarray]]:
    """Maps an epoch's number to its batches: those of `whole` rows, or all of them for None."""
    if parts is None:
        return partial(_plan, lengths, whole, rows, tokens, shuffle, seed)
    if rows is None or not shuffle or whole is not None:
        raise ValueError(
            "`parts` must come with `batch_size` and `shuffle`, and without `drop_remainder`. "
            f"Received: batch_size={rows}, shuffle={shuffle}, drop_remainder={whole is not None}"
        )
    return partial(random_batches, lengths, rows, parts, seed)


def _plan(lengths: np.ndarray, whole: int | None, *arguments: Any) -> list[np.ndarray]:
    """Runs `batch_plan`, and keeps the batches of `whole` rows, or all of them for None."""
    found = batch_plan(lengths, *arguments)
    return found if whole is None else whole_batches(found, whole)


def planned_batches(
    plan: Callable[[int], Sequence[Any]],
    epochs: Epochs,
    done: int,
    is_constant: bool,
    signature: Any = tf.TensorSpec((None,), tf.int64),
) -> tf.data.Dataset:
    """Returns a dataset of the elements that an epoch's plan has for its batches, an epoch a pass.

    Args:
        plan: maps an epoch's number to an element for each batch, by default its indices.
        epochs: numbers the passes.
        done: number of batches at the start of each epoch that are skipped.
        is_constant: whether every epoch has as many batches as the first.
        signature: type specification of an element.
    """

    def batches() -> Iterator[Any]:
        yield from plan(epochs.begin())[done:]

    size = len(plan(0)) - done
    dataset = tf.data.Dataset.from_generator(batches, output_signature=signature)
    if is_constant:
        # Token budgets may give another epoch another number of batches; counts cannot. Where the
        # number is not known, Keras starts one step too many, which moves the seeds of dropout.
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(size))
    return dataset


def _check(
    packed: PackedExamples, labels: Any, weights: Any, fixed_length: int | None, token_labels: Any
) -> None:
    for name, column in (("labels", labels), ("sample_weights", weights)):
        if column is not None and len(column) != len(packed):
            raise ValueError(
                f"`{name}` must have one entry an example. Received: {len(column)} for "
                f"{len(packed)} examples"
            )
    if token_labels is not None and len(token_labels) != len(packed.token_ids):
        raise ValueError(
            "`token_labels` must have one entry a token. Received: "
            f"{len(token_labels)} for {len(packed.token_ids)} tokens"
        )
    if token_labels is not None and labels is not None:
        raise ValueError("`labels` must be left out with `token_labels`. Received: both")
    if weights is not None and labels is None and token_labels is None:
        raise ValueError("`labels` must be given with `sample_weights`. Received: labels=None")
    longest = int(packed.lengths.max(initial=0))
    if fixed_length is not None and fixed_length < longest:
        raise ValueError(
            f"`fixed_length` must be at least the longest example, {longest} tokens. Received: "
            f"fixed_length={fixed_length}"
        )


def _gatherer(packed: PackedExamples, fixed_length: int | None, token_labels: Any) -> Any:
    """Returns a graph function from indices (B,) to padded inputs, and token labels if any."""
    token_ids, segment_ids = tf.constant(packed.token_ids), tf.constant(packed.segment_ids)
    starts, lengths = tf.constant(packed.starts), tf.constant(packed.lengths)
    targets = None if token_labels is None else tf.constant(token_labels)

    def gather(rows: tf.Tensor) -> tuple[Any, ...]:
        row_lengths = tf.gather(lengths, rows)
        width = tf.reduce_max(row_lengths) if fixed_length is None else fixed_length
        columns = tf.range(width)
        real = columns < row_lengths[:, None]  # (B, T)
        cells = tf.gather(starts, rows)[:, None] + tf.cast(columns, tf.int64)
        cells = tf.where(real, cells, 0)
        inputs = {
            "token_ids": tf.where(real, tf.gather(token_ids, cells), packed.padding_id),
            "segment_ids": tf.where(real, tf.gather(segment_ids, cells), 0),
            "padding_mask": real,
        }
        if targets is None:
            return (inputs,)
        if targets.dtype.is_floating:
            return inputs, tf.where(real[..., None], tf.gather(targets, cells), 0.0)
        return inputs, tf.where(real, tf.gather(targets, cells), -1)

    return gather

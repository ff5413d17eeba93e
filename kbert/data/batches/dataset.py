"""From examples without padding to batches, by length and in an order of the epoch.

Shapes: B batch, T the longest example of the batch.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from kbert.data.batches.packed_examples import (
    PackedExamples,
    as_tensors,
    padded_cells,
    plain,
    steady,
)
from kbert.data.batches.plans import (
    batch_plan,
    check_fixed_length,
    random_batches,
    whole_batches,
)

_AHEAD = 2  # batches that are prefetched


class Epochs:
    """Numbers the passes over a dataset, from `first`.

    They are counted, unless `told` is the number of the next pass. Keras makes iterators that it
    never reads; a count is right only as long as these do not start, and it restarts in a process
    that resumes.
    """

    def __init__(self, first: int = 0) -> None:
        self._count = count(first)
        self.told: int | None = None

    def begin(self) -> int:
        """Returns the number of the pass that starts now."""
        return next(self._count) if self.told is None else self.told


def unsharded(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Turns off tf.distribute's auto-sharding of a dataset that is one worker's shard already."""
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return dataset.with_options(options)


def with_epoch_counter(dataset: Any, callbacks: Any) -> Any:
    """Returns the callbacks, after one that numbers the passes where the dataset has `epochs`.

    So an epoch has the same batches in every process.
    """
    epochs = getattr(dataset, "epochs", None)
    if epochs is None or isinstance(callbacks, keras.callbacks.CallbackList):
        return callbacks
    counter = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs=None: setattr(epochs, "told", epoch),
        on_train_end=lambda logs=None: setattr(epochs, "told", None),
    )
    given = callbacks if isinstance(callbacks, list | tuple) else [callbacks]
    return [counter, *(one for one in given if one is not None)]


def read_ahead(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Prefetches batches; without autotuning, see `steady`."""
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
    states: Any = None,
) -> tf.data.Dataset:
    """Returns length-bucketed batches for `fit` and `evaluate`.

    Every pass is one epoch; `shuffle` orders each differently. See `Epochs`. A ValueError says that
    labels or weights are not one an example (or token), that weights come without labels, or that
    `fixed_length` is too short.

    Args:
        labels: (n, ...) or None.
        sample_weights: float (n,) or None; needs `labels`.
        batch_size: examples a batch, or None.
        batch_tokens: the most positions of a batch, padding included, instead of `batch_size`.
        shuffle: whether batch order and composition depend on seed and epoch.
        fixed_length: pad to this length instead of the longest of the batch.
        token_labels: (tokens of all examples, ...) instead of `labels`: ids, whose padding is -1,
            or distributions, whose padding is 0.
        first_epoch: number of the first pass; above 0 where a run is resumed.
        first_batch: batches to skip; such a dataset is the rest of one epoch.
        drop_remainder: leave out batches of fewer examples; needs `batch_size`.
        parts: parts of random batches, for `gradient_accumulation_steps`; see `random_batches`.
        states: `TextFeatures` of the examples, or None.

    Returns:
        A dataset of inputs {"token_ids", "segment_ids" int32 (B, T), "padding_mask" bool (B, T)},
        and the "states" (B, T, M); or (inputs, labels), or (inputs, labels, weights).
    """
    _check(packed, labels, sample_weights, fixed_length, token_labels)
    extras = [tf.constant(x) for x in (labels, sample_weights) if x is not None]
    gather = _gatherer(packed, fixed_length, token_labels)

    def assemble(rows: tf.Tensor) -> Any:
        inputs, *of_tokens = gather(rows)
        if states is not None:
            inputs["states"] = padded_states(states, rows, inputs["token_ids"])
        columns = (*of_tokens, *(tf.gather(extra, rows) for extra in extras))
        return (inputs, *columns) if columns else inputs

    epochs, whole = Epochs(first_epoch), batch_size if drop_remainder else None
    order = (batch_size, batch_tokens, shuffle, seed)
    plan = partial(_plan, packed.lengths, *order, drop_remainder, parts)
    rows, is_constant = tf.TensorSpec((whole,), tf.int64), not shuffle or batch_size is not None
    dataset = planned_batches(plan, epochs, first_batch, is_constant, rows)
    dataset = read_ahead(dataset.map(plain(assemble), num_parallel_calls=_AHEAD))
    dataset.epochs = epochs  # `fit` of kbert's models sets their number
    return dataset


def _plan(
    lengths: np.ndarray,
    rows: int | None,
    tokens: int | None,
    shuffle: bool,
    seed: int,
    only_whole: bool,
    parts: int | None,
    epoch: int,
) -> list[np.ndarray]:
    if parts is None:
        found = batch_plan(lengths, rows, tokens, shuffle, seed, epoch)
        return whole_batches(found, rows) if only_whole and rows is not None else found
    if rows is None or not shuffle or only_whole:
        raise ValueError(
            "`parts` must come with `batch_size` and `shuffle`, and without `drop_remainder`. "
            f"Received: batch_size={rows}, shuffle={shuffle}, drop_remainder={only_whole}"
        )
    return random_batches(lengths, rows, parts, seed, epoch)


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
    check_fixed_length(fixed_length, packed.lengths)


def padded_states(states: Any, rows: tf.Tensor, token_ids: tf.Tensor) -> tf.Tensor:
    """Returns the states (B, T, M) of the rows (B,) of a batch with `token_ids` (B, T)."""
    # Only training runs this, so a call back into Python does no harm.
    found = tf.numpy_function(states.batch, [rows], states.dtype)
    found = tf.ensure_shape(found, (None, None, states.hidden_dim))
    more = tf.shape(token_ids)[1] - tf.shape(found)[1]
    padded = tf.pad(found, ((0, 0), (0, more), (0, 0)))
    return tf.ensure_shape(padded, (*token_ids.shape, states.hidden_dim))


def _gatherer(packed: PackedExamples, fixed_length: int | None, token_labels: Any) -> Any:
    """Returns a graph function from indices (B,) to padded inputs, and token labels if any."""
    examples = as_tensors(packed)
    targets = None if token_labels is None else tf.constant(token_labels)

    def gather(rows: tf.Tensor) -> tuple[Any, ...]:
        cells, real = padded_cells(examples, rows, fixed_length or 0)
        inputs = {
            "token_ids": tf.where(real, tf.gather(examples.token_ids, cells), packed.padding_id),
            "segment_ids": tf.where(real, tf.gather(examples.segment_ids, cells), 0),
            "padding_mask": real,
        }
        if targets is None:
            return (inputs,)
        if targets.dtype.is_floating:
            return inputs, tf.where(real[..., None], tf.gather(targets, cells), 0.0)
        return inputs, tf.where(real, tf.gather(targets, cells), -1)

    return gather

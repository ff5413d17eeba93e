"""Batches of examples of several tasks, and the shares of these.

Shapes: K tasks, B batch, T the longest example of the batch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.data.batches.dataset import Epochs, planned_batches, read_ahead
from kbert.data.batches.packed_examples import PackedExamples, as_tensors, padded_cells, plain
from kbert.data.batches.plans import batch_plan, check_fixed_length, whole_batches

PROPORTIONAL, SQUARE_ROOT = "proportional", "square-root"
TEMPERATURE, ANNEALED = "temperature", "annealed"
SAMPLINGS = (PROPORTIONAL, SQUARE_ROOT, TEMPERATURE, ANNEALED)
TASK_IDS = "task_ids"  # the input that tells the task of each row, and its adapter


@dataclass(frozen=True)
class Columns:
    """Tokenized examples of one task with their targets.

    `labels` (n, ...) has a target an example, `token_labels` (tokens, ...) one a token of `packed`:
    ids, -1 where none counts, or distributions, 0 there. One of them is None.
    """

    packed: PackedExamples
    labels: Any = None
    token_labels: Any = None


@dataclass(frozen=True)
class Sampling:
    """The number of examples that each of several tasks has in an epoch.

    Task k of n_k examples has a share of n_k^a, divided by the sum of all:

    - "proportional": a = 1, each example once an epoch;
    - "square-root": a = 1/2;
    - "temperature": a = 1 / `temperature` (Raffel et al. 2020, section 3.5.2);
    - "annealed": a = 1 - 0.8 e / (E - 1) in epoch e of E, from 0 on: first by size, in the end
      nearly alike (Stickland and Murray 2019, section 3.3).

    `weights` are shares of the tasks instead, in their order. An epoch always has as many examples
    as all tasks together.

    Raises:
        ValueError: an argument is out of its bounds.
    """

    kind: str = PROPORTIONAL
    temperature: float = 2.0
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.kind not in SAMPLINGS:
            raise ValueError(
                f"`sampling` must be one of {', '.join(SAMPLINGS)}, or a number above 0 for each "
                f"task. Received: sampling={self.kind!r}"
            )
        if not is_positive(self.temperature):
            raise ValueError(
                f"`temperature` must be a number above 0. Received: {self.temperature!r}"
            )
        for weight in self.weights or ():
            if not is_positive(weight):
                raise ValueError(
                    "`sampling` must have a number above 0 for each task. Received: "
                    f"sampling={list(self.weights or ())!r}"
                )

    def quotas(self, counts: Sequence[int], epoch: int, epochs: int) -> list[int]:
        """Returns the number of examples of each task in an epoch, from 0, of several.

        Raises:
            ValueError: there are not as many `weights` as tasks.
        """
        sizes = np.asarray(counts, "float64")
        if self.weights is not None:
            if len(self.weights) != len(counts):
                raise ValueError(
                    f"`weights` must be one number a task. Received: {len(self.weights)} for "
                    f"{len(counts)} tasks"
                )
            shares = np.asarray(self.weights, "float64")
        else:
            shares = sizes ** self._exponent(epoch, epochs)
        exact = shares / shares.sum() * sizes.sum()
        found = np.floor(exact).astype(int)
        rest = int(sizes.sum()) - int(found.sum())  # goes to those that lost most by rounding
        found[np.argsort(found - exact, kind="stable")[:rest]] += 1
        return [int(number) for number in found]

    def _exponent(self, epoch: int, epochs: int) -> float:
        if self.kind == ANNEALED:
            return 1.0 - 0.8 * min(epoch, epochs - 1) / max(epochs - 1, 1)
        return {SQUARE_ROOT: 0.5, TEMPERATURE: 1.0 / self.temperature}.get(self.kind, 1.0)

    def rows(
        self, counts: Sequence[int], epoch: int, epochs: int, seed: int
    ) -> list[np.ndarray]:
        """Returns the examples of each task in an epoch, as indices int64 into those of the task.

        A task is gone through in an order that is shuffled after each pass, whatever the epochs
        are, so that over the epochs all of its examples occur equally often, give or take one.
        """
        before = np.zeros(len(counts), int)
        for earlier in range(epoch):
            before += self.quotas(counts, earlier, epochs)
        quotas = self.quotas(counts, epoch, epochs)
        return [
            _passes(count, int(first), quota, (seed, task))
            for task, (count, first, quota) in enumerate(zip(counts, before, quotas))
        ]


def is_positive(value: Any) -> bool:
    """Returns whether a value is a finite number above 0."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 < value < float("inf")


def _passes(count: int, first: int, wanted: int, seed: tuple[int, ...]) -> np.ndarray:
    """Returns entries `first` to `first + wanted` of endless passes over a shuffled range."""
    numbers = range(first // count, (first + wanted - 1) // count + 1) if wanted else range(0)
    orders = [np.random.default_rng((*seed, number)).permutation(count) for number in numbers]
    if not orders:
        return np.zeros(0, "int64")
    return np.concatenate(orders)[first % count :][:wanted].astype("int64")


@dataclass(frozen=True)
class Mixture:
    """Tokenized examples of several tasks, one task's after the other's.

    Attributes:
        packed: All examples.
        columns: Targets by the names of the tasks.
        counts: The number of examples of each task.
    """

    packed: PackedExamples
    columns: dict[str, Columns]
    counts: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.packed)

    @property
    def first_rows(self) -> np.ndarray:
        """The first example of each task, int64 (K,)."""
        return np.cumsum((0, *self.counts[:-1]), dtype="int64")

    def plan(
        self,
        sampling: Sampling | None,
        epoch: int,
        epochs: int,
        batch_size: int | None = 32,
        batch_tokens: int | None = None,
        seed: int = 0,
        only_whole: bool = False,
    ) -> list[np.ndarray]:
        """Returns the batches of an epoch, as indices; without sampling each example once."""
        rows, shuffle = np.arange(len(self), dtype="int64"), sampling is not None
        if sampling is not None:
            drawn = sampling.rows(self.counts, epoch, epochs, seed)
            rows = np.concatenate([first + own for first, own in zip(self.first_rows, drawn)])
        lengths = self.packed.lengths[rows]
        found = batch_plan(lengths, batch_size, batch_tokens, shuffle, seed, epoch)
        if only_whole and batch_size is not None:
            found = whole_batches(found, batch_size)
        return [rows[batch] for batch in found]


def mixture(columns: Mapping[str, Columns]) -> Mixture:
    """Joins the examples of several tasks.

    Raises:
        ValueError: a task has none.
    """
    for name, one in columns.items():
        if not len(one.packed):
            raise ValueError(f"each task must have examples. Received: none for {name!r}")
    every = [one.packed for one in columns.values()]
    sizes = [len(packed.token_ids) for packed in every]
    offsets = np.cumsum((0, *sizes[:-1]), dtype="int64")
    joined = replace(
        every[0],
        token_ids=np.concatenate([packed.token_ids for packed in every]),
        segment_ids=np.concatenate([packed.segment_ids for packed in every]),
        starts=np.concatenate([one.starts + offset for one, offset in zip(every, offsets)]),
        lengths=np.concatenate([packed.lengths for packed in every]),
        truncated=np.concatenate([packed.truncated for packed in every]),
    )
    return Mixture(joined, dict(columns), tuple(len(packed) for packed in every))


def mixed_dataset(
    mixed: Mixture,
    sampling: Sampling | None = None,
    epochs: int = 1,
    *,
    batch_size: int | None = 32,
    batch_tokens: int | None = None,
    seed: int = 0,
    first_epoch: int = 0,
    first_batch: int = 0,
    fixed_length: int | None = None,
    drop_remainder: bool = False,
) -> tf.data.Dataset:
    """Returns length-bucketed batches whose rows are of any of the tasks.

    Args:
        mixed: the examples.
        sampling: how often each task is drawn, differently in each pass; None for each example
            once, the longest first.
        epochs: passes of the whole training, for "annealed".
        batch_size: examples a batch, or None.
        batch_tokens: the most positions of a batch, padding included, instead of `batch_size`.
        seed: of the order.
        first_epoch: number of the first pass; above 0 where a run is resumed.
        first_batch: batches to skip; such a dataset is the rest of one epoch.
        fixed_length: pad to this length instead of the longest of the batch.
        drop_remainder: leave out batches of fewer examples.

    Returns:
        A dataset of inputs {"token_ids", "segment_ids" int32 (B, T), "padding_mask" bool (B, T),
        "task_ids" int32 (B,)}, and a dict of targets by the names of the tasks. Of the rows of
        other tasks a target of a sequence is any, and one of tokens does not count.
    """
    check_fixed_length(fixed_length, mixed.packed.lengths)
    cut: dict[str, Any] = {"batch_size": batch_size, "batch_tokens": batch_tokens}
    cut |= {"seed": seed, "only_whole": drop_remainder}
    counter, plan = Epochs(first_epoch), partial(_planned, mixed, sampling, epochs, cut)
    rows = tf.TensorSpec((batch_size if drop_remainder else None,), tf.int64)
    is_constant = sampling is None or batch_size is not None
    dataset = planned_batches(plan, counter, first_batch, is_constant, rows)
    dataset = read_ahead(dataset.map(plain(_assembler(mixed, fixed_length)), num_parallel_calls=2))
    dataset.epochs = counter  # `fit` of kbert's models sets their number
    return dataset


def _planned(
    mixed: Mixture, sampling: Sampling | None, epochs: int, cut: dict[str, Any], epoch: int
) -> list[np.ndarray]:
    return mixed.plan(sampling, epoch, epochs, **cut)


def _assembler(mixed: Mixture, fixed_length: int | None) -> Any:
    """Returns a graph function from indices (B,) to inputs and targets."""
    packed = as_tensors(mixed.packed)
    firsts = mixed.first_rows
    lasts = firsts + np.asarray(mixed.counts)
    sizes = [len(one.packed.token_ids) for one in mixed.columns.values()]
    first_cells = np.cumsum((0, *sizes[:-1]), dtype="int64")
    with tf.device("CPU"):
        targets = {
            name: tf.constant(one.labels if one.token_labels is None else one.token_labels)
            for name, one in mixed.columns.items()
        }

    def assemble(rows: tf.Tensor) -> Any:
        cells, real = padded_cells(packed, rows, fixed_length or 0)
        ends = tf.constant(lasts)
        tasks = tf.searchsorted(ends, rows, side="right", out_type=tf.int32)
        inputs = {
            "token_ids": tf.where(real, tf.gather(packed.token_ids, cells), packed.padding_id),
            "segment_ids": tf.where(real, tf.gather(packed.segment_ids, cells), 0),
            "padding_mask": real,
            TASK_IDS: tasks,
        }
        found = {}
        for number, (name, own) in enumerate(mixed.columns.items()):
            if own.token_labels is None:
                found[name] = _within(targets[name], rows - int(firsts[number]))
                continue
            counts = real & tf.equal(tasks, number)[:, None]
            one = _within(targets[name], cells - int(first_cells[number]))
            nothing = tf.constant(0 if one.dtype.is_floating else -1, one.dtype)
            counts = counts[..., None] if one.shape.rank == 3 else counts
            found[name] = tf.where(counts, one, nothing)
        return inputs, found

    return assemble


def _within(column: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
    """Returns the entries at some places, any entry for a place outside."""
    return tf.gather(column, tf.clip_by_value(places, 0, len(column) - 1))

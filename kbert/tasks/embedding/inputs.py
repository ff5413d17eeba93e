"""Texts to embed, single or several an example: their forms and their batches.

Shapes: B or n examples, K texts of each, T tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.data.batches.dataset import Epochs, planned_batches, read_ahead
from kbert.data.batches.packed_examples import (
    PackedExamples,
    as_tensors,
    padded_cells,
    plain,
)
from kbert.data.batches.plans import batch_plan, check_sizes, random_batches
from kbert.pipelines.text_inputs import (
    as_column,
    checked_texts,
    dict_of_texts,
    is_texts,
    read_columns,
)

# Names of columns in tables and dicts; the first of these forms that a table has is taken.
FORMS = (
    ("anchor", "positive", "negative"),
    ("text_a", "text_b", "negative"),
    ("anchor", "positive"),
    ("text_a", "text_b"),
    ("text",),
    ("text_a",),
)
# Numbers of texts go through float32 in Keras' losses.
_MOST_NUMBERS = 1 << 24


@dataclass(frozen=True)
class TextColumns:
    """K columns of n texts each, str or bytes."""

    columns: tuple[Sequence[Any], ...]

    def __len__(self) -> int:
        return len(self.columns[0])

    def __getitem__(self, rows: slice) -> "TextColumns":
        return TextColumns(tuple(column[rows] for column in self.columns))

    @property
    def in_rows(self) -> list[Any]:
        """The texts example by example, n K of them."""
        return [text for row in zip(*self.columns) for text in row]

    @property
    def numbers(self) -> np.ndarray:
        """A number for each text, int32 (n, K), the same for equal texts."""
        known: dict[Any, int] = {}
        found = [known.setdefault(_as_text(text), len(known)) for text in self.in_rows]
        shape = (len(self), len(self.columns))
        return (np.array(found, "int64") % _MOST_NUMBERS).astype("int32").reshape(shape)


@dataclass(frozen=True)
class PackedTuples:
    """Token ids of n examples of `count` texts each; `packed` are all texts, row by row."""

    packed: PackedExamples
    count: int

    def __len__(self) -> int:
        return len(self.packed) // self.count

    @property
    def lengths(self) -> np.ndarray:
        """Number of real tokens of each example, over all its texts, int (n,)."""
        return self.packed.lengths.reshape(-1, self.count).sum(axis=1)

    @property
    def positions(self) -> np.ndarray:
        """Number of positions of each example, K times its longest text, int (n,)."""
        return self.count * self.packed.lengths.reshape(-1, self.count).max(axis=1, initial=0)

    @property
    def truncated(self) -> np.ndarray:
        """Mask of the examples with a text that was cut, bool (n,)."""
        return np.any(self.packed.truncated.reshape(-1, self.count), axis=1)


def read_text_columns(x: Any) -> TextColumns | None:
    """Reads texts, or several columns of them; returns None for something else.

    These are a list, array or column of str or bytes; a tuple of several such, of one length; and a
    dict or table with the columns of one of `FORMS`.

    Raises:
        ValueError: `x` is a single text, a list of tuples, columns of different lengths, or a dict
            or table with other names.
        TypeError: an entry is neither str nor bytes.
    """
    if isinstance(x, str | bytes):
        raise ValueError(f"`x` must be a list of texts. Received: x={x[:80]!r}, a single one")
    x = read_columns(x, *FORMS)
    if isinstance(x, list) and x and isinstance(x[0], list | tuple) and x[0] and is_texts(x[0]):
        raise ValueError(
            "`x` must be a tuple of lists, one for the first texts of all examples, one for the "
            f"second ones, and so on. Received: a list that begins with {x[0]!r:.80}"
        )
    if isinstance(x, dict):
        columns = dict_of_texts(x, *FORMS)
        if columns is None:
            return None
    elif isinstance(x, tuple) and x and all(map(is_texts, map(as_column, x))):
        names = ("x",) if len(x) == 1 else [f"x[{number}]" for number in range(len(x))]
        columns = [checked_texts(name, as_column(column)) for name, column in zip(names, x)]
    elif is_texts(x):
        columns = [checked_texts("x", x)]
    else:
        return None
    if len(set(map(len, columns))) > 1:
        raise ValueError(
            f"the columns of `x` must be of one length. Received: {', '.join(map(_size, columns))}"
        )
    return TextColumns(tuple(columns))


def _size(column: Sequence[Any]) -> str:
    return f"{len(column)} texts"


def _as_text(text: Any) -> Any:
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text


def tuple_dataset(
    tuples: PackedTuples,
    targets: Any = None,
    sample_weights: Any = None,
    batch_size: int | None = None,
    batch_tokens: int | None = None,
    shuffle: bool = False,
    seed: int = 0,
    first_epoch: int = 0,
    first_batch: int = 0,
) -> tf.data.Dataset:
    """Returns batches of token ids (B, K, T), with targets and weights where given.

    Batches are of random composition, since the texts of a batch are each other's negatives, and
    similar lengths would make these a selection. Padding is not computed. Without `shuffle` they
    are in the order of the examples; with `batch_tokens`, the most positions, of similar length.
    """
    examples, count = as_tensors(tuples.packed), tuples.count
    extras = [tf.constant(x) for x in (targets, sample_weights) if x is not None]

    def assemble(rows: tf.Tensor) -> Any:
        flat = tf.reshape(rows[:, None] * count + tf.range(count, dtype=tf.int64), (-1,))
        cells, real = padded_cells(examples, flat, 0)
        columns = {
            "token_ids": tf.where(real, tf.gather(examples.token_ids, cells), examples.padding_id),
            "segment_ids": tf.where(real, tf.gather(examples.segment_ids, cells), 0),
            "padding_mask": real,
        }
        shape = (-1, count, tf.shape(real)[1])
        inputs = {name: tf.reshape(column, shape) for name, column in columns.items()}
        rest = [tf.gather(extra, rows) for extra in extras]
        return (inputs, *rest) if rest else inputs

    plan = partial(tuple_plan, tuples.positions, batch_size, batch_tokens, shuffle, seed)
    epochs = Epochs(first_epoch)
    dataset = planned_batches(plan, epochs, first_batch, batch_tokens is None or not shuffle)
    dataset = read_ahead(dataset.map(plain(assemble), num_parallel_calls=2))
    dataset.epochs = epochs
    return dataset


def tuple_plan(
    lengths: np.ndarray,
    rows: int | None,
    tokens: int | None,
    shuffle: bool,
    seed: int,
    epoch: int,
) -> list[np.ndarray]:
    """Returns the batches of an epoch, arrays of indices of examples; see `tuple_dataset`.

    `lengths` are the positions that each example takes.
    """
    check_sizes(rows, tokens)
    if rows is None:
        return batch_plan(lengths, None, tokens, shuffle, seed, epoch)
    if shuffle:
        return random_batches(lengths, rows, 1, seed, epoch)
    return [np.arange(i, min(i + rows, len(lengths))) for i in range(0, len(lengths), rows)]

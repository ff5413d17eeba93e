"""Targets of several labels as users write them, and examples whose thresholds may be tuned."""

import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.metrics.label_sets import best_thresholds
from kbert.pipelines.sequence_batching import SequenceBatching
from kbert.tasks.classification.inputs import are_numbers
from kbert.tasks.inputs import Prepared


class LabelSetBatching(SequenceBatching):
    """Batches of texts with any number of labels each, for a model with `labels`."""

    def encode_targets(self, y: Any) -> np.ndarray:
        """Converts n lists of names or ids, or rows of C numbers in [0, 1], to float32 (n, C).

        A table of pandas has a column of numbers for each label. Lists of whole numbers are names
        where the labels are numbers other than 0, 1, ... in this order.

        Raises:
            ValueError: an entry is no list, a name or id is unknown or there twice, a row of
                numbers does not have C of them, one is not in [0, 1], a table has other columns
                than the labels, or lists of one or two integers may be either.
        """
        names = self.model.label_names
        if hasattr(y, "iloc") and hasattr(y, "columns"):
            if set(y.columns) != set(names):
                raise ValueError(
                    f"`y` must have a column for each of {list(names)}. Received: "
                    f"{list(y.columns)}"
                )
            y = y[list(names)].to_numpy()
        array = y.numpy() if hasattr(y, "numpy") else y
        if not isinstance(array, np.ndarray) or array.dtype.kind in "OUS":
            rows = [_row(row) for row in array]
            if any(any(isinstance(one, str) for one in row) for row in rows):
                return self._of_names(rows)
            if not all(_is_multi_hot(row, len(names)) for row in rows):
                if are_numbers(list(names)):
                    return self._of_names([[_name(one) for one in row] for row in rows])
                return self._of_ids(rows)
            if rows and all(_are_ids(row, len(names), numbers.Integral) for row in rows):
                raise ValueError(
                    "`y` must be names, or an array of rows of 0 and 1, where lists of integers "
                    f"may be ids as well as such rows. Received: {rows[0]} for the labels "
                    f"{list(names)}"
                )
            array = np.array(rows, "float32").reshape(len(rows), len(names))
        if array.ndim != 2 or array.shape[1] != len(names):
            raise ValueError(
                f"`y` must have {len(names)} numbers a row, one a label. Received: shape "
                f"{array.shape}"
            )
        values = array.astype("float32")
        if not ((values >= 0) & (values <= 1)).all():
            raise ValueError(
                "`y` must hold 0, 1 or numbers between. Received: numbers from "
                f"{values.min()} to {values.max()}"
            )
        return values

    def encode_class_weight(self, weights: Any) -> Any:
        """Refuses weights of classes, which Keras would look up by the first label of a row.

        Raises:
            ValueError: there are any.
        """
        if weights is not None:
            raise ValueError(
                "`class_weight` must be None for several labels a text: weights of positive "
                "targets are an argument of the loss, SigmoidCrossEntropy(positive_weights). "
                f"Received: {weights!r:.80}"
            )

    def encode_names(self, names: Any) -> Any:
        """Converts names (B, K), ragged or padded with "", to float32 (B, C), as graph code.

        The graph fails for unknown ones.
        """
        names = names.to_tensor("") if isinstance(names, tf.RaggedTensor) else names
        if names.shape.rank != 2:
            raise ValueError(f"targets must be names (B, K), or numbers (B, C). Received: {names}")
        same = names[:, :, None] == tf.constant(self.model.labels)  # (B, K, C)
        known = tf.debugging.Assert(
            tf.reduce_all(tf.reduce_any(same, axis=-1) | (names == "")),
            [f"`y` must hold labels of {self.model.labels}. Received:", names],
        )
        with tf.control_dependencies([known] if known is not None else []):
            return tf.cast(tf.reduce_any(same, axis=1), tf.float32)

    def _of_names(self, rows: list[list[Any]]) -> np.ndarray:
        names = self.model.label_names
        unknown = sorted({str(one) for row in rows for one in row} - set(names))
        if unknown:
            raise ValueError(
                f"`y` must hold labels of {list(names)}. Received: {unknown[:10]}"
            )
        twice = next((row for row in rows if len(set(row)) < len(row)), None)
        if twice is not None:
            raise ValueError(f"`y` must hold lists of different labels. Received: {twice!r:.80}")
        return _multi_hot([[names.index(one) for one in row] for row in rows], len(names))

    def _of_ids(self, rows: list[list[Any]]) -> np.ndarray:
        count = len(self.model.label_names)
        for row in rows:
            if not _are_ids(row, count):
                raise ValueError(
                    f"`y` must hold lists of different ids in [0, {count}), or rows of {count} "
                    f"numbers in [0, 1]. Received: {row!r:.80}"
                )
        return _multi_hot(rows, count)


@dataclass(frozen=True)
class PreparedLabels(Prepared):
    """Examples with several labels, tokenized, measured at a model's thresholds.

    `measure` maps targets, predictions and thresholds to the metrics. Where `is_tuning`, the
    model's thresholds become those with the largest F1 on these examples.
    """

    measure: Callable[..., dict[str, Any]]
    is_tuning: bool = False

    def measured(self, model: Any) -> dict[str, Any]:
        predictions = self.input.predict(model)
        if self.is_tuning:
            model.threshold = best_thresholds(self.right, predictions)
        return self.measure(self.right, predictions, list(model.thresholds.values()))

    def validating(self, config: Any) -> "PreparedLabels":
        return replace(self, is_tuning=config.tune_thresholds)


def _row(row: Any) -> list[Any]:
    if isinstance(row, str | bytes) or not isinstance(row, Sequence | np.ndarray | set):
        raise ValueError(
            "`y` must hold a list of labels for each text, empty for none. Received: "
            f"{row!r:.80}"
        )
    return [one.decode() if isinstance(one, bytes) else one for one in row]


def _name(number: Any) -> str:
    is_whole = isinstance(number, float | np.floating) and float(number).is_integer()
    return str(int(number) if is_whole else number)


def _is_multi_hot(row: list[Any], count: int) -> bool:
    return len(row) == count and all(0 <= one <= 1 for one in row)


def _are_ids(row: list[Any], count: int, kind: type = object) -> bool:
    whole = all(isinstance(one, kind) and not isinstance(one, bool) for one in row)
    whole = whole and all(float(one).is_integer() and 0 <= one < count for one in row)
    return whole and len(set(row)) == len(row)


def _multi_hot(rows: list[list[Any]], count: int) -> np.ndarray:
    targets = np.zeros((len(rows), count), "float32")
    for number, row in enumerate(rows):
        targets[number, np.asarray(row, "int64")] = 1.0
    return targets

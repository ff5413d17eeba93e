"""Texts with classes, by name, number or probability."""

import math
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.pipelines.sequence_batching import SequenceBatching

_TRUTH = {"True", "False"}


class LabelBatching(SequenceBatching):
    """Batches of texts with class names, ids or distributions, for a model with `labels`."""

    def encode_targets(self, y: Any) -> np.ndarray:
        """Converts n class names to ids; ids, also (n, 1), and probabilities (n, C) stay.

        Whole numbers are names where the labels are numbers other than 0, 1, ... in this order.

        Raises:
            ValueError: a name is unknown, an id is not an integer in [0, C), or a row of
                probabilities does not have C entries of sum 1.
        """
        values = np.asarray(y)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim == 1 and values.dtype.kind == "f":
            missing = np.flatnonzero(np.isnan(values))
            if missing.size:
                raise ValueError(
                    "`y` must have a label for each text. Received: a missing label, "
                    f"y[{missing[0]}]={values[missing[0]]}"
                )
            fractions = values[values != np.floor(values)]
            if fractions.size:
                raise ValueError(
                    "`y` must hold names, ids or distributions. Received: fractions such as "
                    f"{fractions[0]}"
                )
            values = values.astype("int64")
        if values.dtype.kind == "b" and set(self.model.labels) != _TRUTH:
            values = values.astype("int64")  # as in a dataset
        if values.ndim == 1 and self._holds_names(values):
            values = values.astype(str)
        if values.dtype.kind in "OUS":
            ids = {name: i for i, name in enumerate(self.model.label_names)}
            names = [v.decode() if isinstance(v, bytes) else str(v) for v in values.tolist()]
            unknown = sorted(set(names) - set(ids))
            if unknown:
                raise ValueError(
                    f"`y` must hold labels of {self.model.labels}. Received: {unknown[:10]}"
                )
            return np.array([ids[name] for name in names], "int32")
        if values.ndim == 2:
            return self._distributions(values)
        if values.size and not (0 <= values.min() and values.max() < self.model.num_labels):
            raise ValueError(
                f"`y` must hold ids in [0, {self.model.num_labels}). Received: ids from "
                f"{values.min()} to {values.max()}"
            )
        return values.astype("int32")

    def _holds_names(self, numbers: np.ndarray) -> bool:
        """Returns whether numbers, or truth values, are names of labels and not their ids."""
        names = self.model.labels
        if numbers.dtype.kind == "b":
            return set(names) == _TRUTH
        return numbers.dtype.kind in "iu" and are_numbers(names)

    def _distributions(self, values: np.ndarray) -> np.ndarray:
        """Checks probabilities (n, C), and returns them in float32."""
        if values.shape[1] != self.model.num_labels:
            raise ValueError(
                f"`y` must have {self.model.num_labels} probabilities a row. "
                f"Received: shape {values.shape}"
            )
        found = values.astype("float32")
        wrong = ~((found >= 0).all(axis=1) & np.isclose(found.sum(axis=1), 1, atol=1e-3))
        if wrong.any():
            raise ValueError(
                "`y` must have probabilities in each row, of sum 1. Received: "
                f"{values[wrong][0].tolist()}"
            )
        return found

    def encode_class_weight(self, weights: dict[Any, float] | None) -> dict[int, float] | None:
        """Converts weights by class name or id to weights by id; a class without one has weight 1.

        Raises:
            ValueError: it is no dict, a key is neither a class name nor an id, or a weight is none.
        """
        if weights is None:
            return None
        if not isinstance(weights, dict):
            raise ValueError(
                "`class_weight` must be a dict of weights by the labels, or None. Those that "
                "balance classes are n / (classes * examples of the class). "
                f"Received: {weights!r:.80}"
            )
        ids = {name: number for number, name in enumerate(self.model.label_names)}
        found = dict.fromkeys(range(self.model.num_labels), 1.0)
        for key, weight in weights.items():
            is_name = self._holds_names(np.asarray(key)) or are_numbers(self.model.labels)
            number = ids.get(str(key)) if is_name else ids.get(key, key)
            if number not in found:
                raise ValueError(
                    f"`class_weight` must have labels of {self.model.labels}, or their ids, as "
                    f"keys. Received: {key!r}"
                )
            if not isinstance(weight, float | int | np.number) or not 0 <= weight < math.inf:
                raise ValueError(
                    "`class_weight` must hold finite numbers of at least 0. "
                    f"Received: {key!r}: {weight!r}"
                )
            found[int(number)] = float(weight)
        return found

    def encode_names(self, names: Any) -> Any:
        """Converts class names (B,) to ids int32 (B,), in a graph that fails for unknown ones."""
        same = names[:, None] == tf.constant(self.model.labels)  # (B, C)
        known = tf.debugging.Assert(
            tf.reduce_all(tf.reduce_any(same, axis=-1)),
            [f"`y` must hold labels of {self.model.labels}. Received:", names],
        )
        with tf.control_dependencies([known] if known is not None else []):
            return tf.argmax(tf.cast(same, tf.int32), axis=-1, output_type=tf.int32)

    def encode_numbers(self, targets: Any) -> Any:
        """Encodes ids or truth values (B,) as `encode_targets` does, in a graph that fails alike.

        Distributions (B, C) stay as they are.
        """
        if targets.dtype.is_floating and targets.shape.rank != 1:
            return targets
        if targets.dtype == tf.bool and set(self.model.labels) == _TRUTH:
            return self.encode_names(tf.where(targets, "True", "False"))
        ids = targets if targets.dtype.is_integer else tf.cast(targets, tf.int64)
        if targets.dtype.is_floating:
            words = "`y` must hold names, ids or distributions. Received: fractions in"
            whole = tf.reduce_all(tf.cast(ids, targets.dtype) == targets)
            checked = tf.debugging.Assert(whole, [words, targets])
            with tf.control_dependencies([checked] if checked is not None else []):
                ids = tf.identity(ids)
        if are_numbers(self.model.labels):
            return self.encode_names(tf.strings.as_string(ids))
        valid = tf.reduce_all((ids >= 0) & (ids < tf.cast(self.model.num_labels, ids.dtype)))
        words = f"`y` must hold ids in [0, {self.model.num_labels}). Received:"
        checked = tf.debugging.Assert(valid, [words, ids])
        with tf.control_dependencies([checked] if checked is not None else []):
            return tf.identity(ids)


def are_numbers(names: list[str]) -> bool:
    """Returns whether labels are whole numbers, and not 0, 1, ... in this order."""
    are_whole = all(name.removeprefix("-").isdecimal() for name in names)
    return are_whole and names != list(map(str, range(len(names))))

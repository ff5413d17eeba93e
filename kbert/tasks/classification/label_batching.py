"""Batches of texts with classes as targets, by their names or ids."""

from typing import Any

import numpy as np
import tensorflow as tf

from kbert.pipelines.base.sequence_batching import SequenceBatching


class LabelBatching(SequenceBatching):
    """Batches of texts with class names, ids or distributions, for a model with `labels`."""

    def encode_targets(self, y: Any) -> np.ndarray:
        """Converts class names to ids; ids and distributions over classes stay.

        Args:
            y: n class names or ids, also (n, 1), or (n, C) probabilities.

        Raises:
            ValueError: a name is unknown, an id is not an integer in [0, C), or a distribution
                does not have C entries.
        """
        values = np.asarray(y)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
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
            if values.shape[1] != self.model.num_labels:
                raise ValueError(
                    f"`y` must have {self.model.num_labels} probabilities a row. "
                    f"Received: shape {values.shape}"
                )
            return values.astype("float32")
        if values.dtype.kind == "f" and not (values == np.floor(values)).all():
            raise ValueError(
                "`y` must hold names, ids or distributions. Received: fractions such as "
                f"{values[values != np.floor(values)][0]}"
            )
        if values.size and not (0 <= values.min() and values.max() < self.model.num_labels):
            raise ValueError(
                f"`y` must hold ids in [0, {self.model.num_labels}). Received: ids from "
                f"{values.min()} to {values.max()}"
            )
        return values.astype("int32")

    def encode_class_weight(self, weights: dict[Any, float] | None) -> dict[int, float] | None:
        """Converts weights of classes to a dict by id, which Keras takes.

        Args:
            weights: class name or id -> weight; a class without one has weight 1. Or None.

        Raises:
            ValueError: a key is neither a class name nor an id.
        """
        if weights is None:
            return None
        ids = {name: number for number, name in enumerate(self.model.label_names)}
        found = dict.fromkeys(range(self.model.num_labels), 1.0)
        for key, weight in weights.items():
            number = ids.get(key, key)
            if number not in found:
                raise ValueError(
                    f"`class_weight` must have labels of {self.model.labels}, or their ids, as "
                    f"keys. Received: {key!r}"
                )
            found[int(number)] = float(weight)
        return found

    def encode_names(self, names: Any) -> Any:
        """Converts class names (B,) to ids int32 (B,), as graph code that fails for unknown ones.

        Args:
            names: string (B,).
        """
        same = names[:, None] == tf.constant(self.model.labels)  # (B, C)
        known = tf.debugging.Assert(
            tf.reduce_all(tf.reduce_any(same, axis=-1)),
            [f"`y` must hold labels of {self.model.labels}. Received:", names],
        )
        with tf.control_dependencies([known] if known is not None else []):
            return tf.argmax(tf.cast(same, tf.int32), axis=-1, output_type=tf.int32)

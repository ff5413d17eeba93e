"""Losses over logits."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops


def wide_dtype(dtype: str) -> str:
    """Returns "float64" for "float64", otherwise "float32".

    Args:
        dtype: the compute dtype of a model.
    """
    return "float64" if dtype == "float64" else "float32"


def widened(logits: Any) -> Any:
    """Casts logits to float32; those in float64 stay as they are.

    Args:
        logits: array of any shape.
    """
    logits = ops.convert_to_tensor(logits)
    return ops.cast(logits, wide_dtype(keras.backend.standardize_dtype(logits.dtype)))


@keras.saving.register_keras_serializable("kbert")
class SoftmaxCrossEntropy(keras.losses.Loss):
    """-sum_c w_c t_c log softmax(logits)_c, for class ids or distributions over classes.

    The mean over a batch divides by the number of examples, whatever their classes' weights are.

    Args:
        class_weights: w, one weight per class; None for equal weights.
        name: of the loss.
        reduction: name of a reduction of `keras.losses.Loss`.
    """

    def __init__(
        self,
        class_weights: Sequence[float] | None = None,
        name: str = "softmax_cross_entropy",
        reduction: str = "sum_over_batch_size",
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, reduction=reduction, **kwargs)
        self.class_weights = None if class_weights is None else [float(w) for w in class_weights]

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the loss of each example.

        Args:
            y_true: class ids (B,) or (B, 1), or distributions (B, C).
            y_pred: logits (B, C).

        Returns:
            (B,).
        """
        log_probabilities = ops.log_softmax(widened(y_pred), axis=-1)
        distribution = class_distribution(y_true, y_pred)
        terms = ops.cast(distribution, log_probabilities.dtype) * log_probabilities
        if self.class_weights is not None:
            terms = terms * ops.convert_to_tensor(self.class_weights, dtype=terms.dtype)
        return -ops.sum(terms, axis=-1)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "class_weights": self.class_weights}


def class_distribution(y_true: Any, y_pred: Any) -> Any:
    """Returns the labels as one distribution per example.

    Args:
        y_true: class ids (B,) or (B, 1), or distributions (B, C).
        y_pred: anything of shape (B, C); only C is read.

    Returns:
        float32 (B, C).
    """
    if len(y_true.shape) == 2 and y_true.shape[-1] == 1 and y_pred.shape[-1] != 1:
        y_true = ops.squeeze(y_true, -1)
    if len(y_true.shape) == 2:
        return ops.cast(y_true, "float32")
    classes = ops.arange(ops.shape(y_pred)[-1], dtype="int32")
    return ops.cast(ops.equal(ops.cast(y_true, "int32")[:, None], classes), "float32")


@keras.saving.register_keras_serializable("kbert")
def label_accuracy(y_true: Any, y_pred: Any) -> Any:
    """Returns 1 where the predicted class is the true one (of a distribution: its argmax), else 0.

    Args:
        y_true: class ids (B,) or (B, 1), or distributions (B, C).
        y_pred: logits (B, C).

    Returns:
        float32 (B,).
    """
    truth = ops.argmax(class_distribution(y_true, y_pred), axis=-1)
    return ops.cast(ops.equal(truth, ops.argmax(y_pred, axis=-1)), "float32")

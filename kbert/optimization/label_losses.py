"""The loss of independent labels, of which an example has any number, and metrics of whole sets.

Each label is a question of its own: a logit, its sigmoid, and a binary cross-entropy.
"""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from kbert.optimization.losses import widened


@keras.saving.register_keras_serializable("kbert")
class SigmoidCrossEntropy(keras.losses.Loss):
    """-mean_c [w_c t_c log sigmoid(z_c) + (1 - t_c) log(1 - sigmoid(z_c))], for labels in [0, 1].

    Without weights and smoothing it is `BCEWithLogitsLoss` of PyTorch, and with weights the one
    with these as `pos_weight`. The mean over a batch divides by the number of examples.

    Args:
        positive_weights: w, the weight of each label's positive targets; None for equal weights.
        label_smoothing: s in [0, 1): targets t become t (1 - s) + s / 2.
        name: of the loss.
        reduction: name of a reduction of `keras.losses.Loss`.

    Raises:
        ValueError: `label_smoothing` is not in [0, 1).
    """

    def __init__(
        self,
        positive_weights: Sequence[float] | None = None,
        label_smoothing: float = 0.0,
        name: str = "sigmoid_cross_entropy",
        reduction: str = "sum_over_batch_size",
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, reduction=reduction, **kwargs)
        if not 0 <= label_smoothing < 1:
            raise ValueError(
                "`label_smoothing` must be in [0, 1). "
                f"Received: label_smoothing={label_smoothing}"
            )
        weights = positive_weights
        self.positive_weights = None if weights is None else [float(w) for w in weights]
        self.label_smoothing = float(label_smoothing)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the loss (B,) of logits (B, C) for targets (B, C) in [0, 1]."""
        logits = widened(y_pred)
        targets = ops.cast(y_true, logits.dtype)
        if self.label_smoothing:
            targets = targets * (1.0 - self.label_smoothing) + self.label_smoothing / 2.0
        # log sigmoid(z) = -softplus(-z), and log(1 - sigmoid(z)) = -softplus(z): finite for all z.
        positive = targets * ops.softplus(-logits)
        if self.positive_weights is not None:
            positive = positive * ops.convert_to_tensor(self.positive_weights, dtype=logits.dtype)
        return ops.mean(positive + (1.0 - targets) * ops.softplus(logits), axis=-1)

    def get_config(self) -> dict[str, Any]:
        own = {
            "positive_weights": self.positive_weights,
            "label_smoothing": self.label_smoothing,
        }
        return {**super().get_config(), **own}


@keras.saving.register_keras_serializable("kbert")
def exact_match(y_true: Any, y_pred: Any) -> Any:
    """Returns float32 (B,): 1 where all labels are right at a probability of 1/2, else 0.

    `y_true` (B, C) are targets in [0, 1], of which 1/2 and more is the label; `y_pred` logits.
    """
    right = ops.equal(ops.greater_equal(y_true, 0.5), ops.greater_equal(y_pred, 0.0))
    return ops.cast(ops.all(right, axis=-1), "float32")


@keras.saving.register_keras_serializable("kbert")
class MicroF1(keras.metrics.Metric):
    """F1 of all labels of all examples together, at a probability of 1/2; 0 without any label."""

    def __init__(self, name: str = "micro_f1", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.hits = self.add_variable((), "zeros", dtype="float32", name="hits")
        # Labels that examples have, and labels that are predicted.
        self.named = self.add_variable((), "zeros", dtype="float32", name="named")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Adds a batch: targets (B, C) in [0, 1], logits (B, C), and weights (B,) if any."""
        right = ops.cast(ops.greater_equal(y_true, 0.5), "float32")
        predicted = ops.cast(ops.greater_equal(y_pred, 0.0), "float32")
        hits, named = right * predicted, right + predicted
        if sample_weight is not None:
            weight = ops.reshape(ops.cast(sample_weight, "float32"), (-1, 1))
            hits, named = hits * weight, named * weight
        self.hits.assign_add(ops.sum(hits))
        self.named.assign_add(ops.sum(named))

    def result(self) -> Any:
        """Returns 2 hits / (labels of the examples + predicted labels)."""
        some = ops.maximum(self.named, keras.config.epsilon())
        return ops.where(self.named > 0, 2.0 * self.hits / some, 0.0)

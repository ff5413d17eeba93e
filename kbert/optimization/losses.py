"""Losses over logits, and exact means over a batch that replicas share or that accumulates.

A replica is a copy of the model that computes on its examples of a batch (`tf.distribute`). Keras
takes the mean over the examples of each replica, and then the mean of these; where replicas have
different numbers of examples, or of tokens that count, that is not the mean over the batch. Here
every denominator is a sum over all replicas, so that the gradients summed over replicas are those
of one device with the whole batch. On one device, and on other backends, nothing changes.
"""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops


def wide_dtype(dtype: str) -> str:
    """Returns "float64" for the compute dtype "float64", otherwise "float32"."""
    return "float64" if dtype == "float64" else "float32"


def widened(logits: Any) -> Any:
    """Casts logits to float32; those in float64 stay as they are."""
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
        """Returns the loss (B,) of examples with labels as in `class_distribution`."""
        log_probabilities = ops.log_softmax(widened(y_pred), axis=-1)
        distribution = class_distribution(y_true, y_pred)
        terms = ops.cast(distribution, log_probabilities.dtype) * log_probabilities
        if self.class_weights is not None:
            terms = terms * ops.convert_to_tensor(self.class_weights, dtype=terms.dtype)
        return -ops.sum(terms, axis=-1)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "class_weights": self.class_weights}


def class_distribution(y_true: Any, y_pred: Any) -> Any:
    """Returns class ids (B,) or (B, 1), or distributions (B, C), as distributions, float32 (B, C).

    Of `y_pred` (B, C) only C is read.
    """
    if len(y_true.shape) == 2 and y_true.shape[-1] == 1 and y_pred.shape[-1] != 1:
        y_true = ops.squeeze(y_true, -1)
    if len(y_true.shape) == 2:
        return ops.cast(y_true, "float32")
    classes = ops.arange(ops.shape(y_pred)[-1], dtype="int32")
    return ops.cast(ops.equal(ops.cast(y_true, "int32")[:, None], classes), "float32")


@keras.saving.register_keras_serializable("kbert")
def label_accuracy(y_true: Any, y_pred: Any) -> Any:
    """Returns float32 (B,): 1 where the predicted class is the true one, else 0.

    The true class of a distribution is its argmax.
    """
    truth = ops.argmax(class_distribution(y_true, y_pred), axis=-1)
    return ops.cast(ops.equal(truth, ops.argmax(y_pred, axis=-1)), "float32")


def tensorflow() -> Any:
    """Imports TensorFlow, only where it is the running backend."""
    import tensorflow

    return tensorflow


def replica_context() -> Any:
    """Returns TensorFlow's context of the current replica, or None where there is only one."""
    if keras.backend.backend() != "tensorflow":
        return None
    # None too outside the graph of a single replica, for example when Keras infers shapes.
    context = tensorflow().distribute.get_replica_context()
    return None if context is None or context.num_replicas_in_sync == 1 else context


def over_replicas(*values: Any) -> list[Any]:
    """Returns the sum of each array over all replicas, with no gradient; of one, the arrays."""
    context = replica_context()
    if context is None:
        return list(values)
    return list(context.all_reduce("SUM", [ops.stop_gradient(value) for value in values]))


def whole_batch_loss(loss: Any, rows: Any) -> Any:
    """Converts a loss averaged over a replica's examples to this replica's part of the batch loss.

    With l_r the mean over the n_r examples of replica r, the loss of the batch is
    L = sum_r n_r l_r / sum_r n_r. Keras computes l_r / R, with R replicas. What is returned has the
    gradient of n_r l_r / sum_r n_r, so that the sum over the replicas is the gradient of L; and the
    value L / R, from which Keras reports L. `loss` is l_r, from Keras' `compute_loss`, `rows` n_r.
    """
    context = replica_context()
    if context is None:
        return loss
    rows = ops.cast(rows, loss.dtype)
    # Without examples the loss may be an empty array, or 0 / 0.
    part = ops.where(rows > 0, ops.sum(loss), 0.0) * (rows * context.num_replicas_in_sync)
    whole, all_rows = over_replicas(part, rows)
    part, whole = part / all_rows, whole / (all_rows * context.num_replicas_in_sync)
    return part + ops.stop_gradient(whole - part)


def accumulation_weights(tokens: Sequence[int], steps: int) -> list[float]:
    """Returns the sample weights with which accumulated gradients are those of a large batch.

    An optimizer with `gradient_accumulation_steps=steps` takes the plain mean of the gradients of
    `steps` batches in a row. Where a loss is a mean over the tokens of its batch, as
    `LabelSmoothedCrossEntropy` and `TokenCrossEntropy` are, a token of a short batch then has
    more weight than one of a long batch. With the loss of batch i multiplied by
    w_i = steps n_i / (n_1 + ... + n_steps), n the tokens that count, the mean of the gradients is
    exactly the gradient of the mean over all tokens of the update:
    1/steps sum_i w_i g_i = sum_i n_i g_i / sum_i n_i. The w_i of an update have the mean 1.

    Give each example of batch i the sample weight w_i. The optimizer keeps counting batches across
    epochs, so every epoch must have a whole number of updates. (At the end of data of unknown
    length Keras' own optimizers count one batch too many; kbert's AdamW does not.)

    Args:
        tokens: the n_i of each batch (targets other than -1), in the order of the training.
        steps: batches per update.

    Returns:
        One weight per batch; all are 0 in an update without tokens.
    """
    if steps < 1:
        raise ValueError(f"`steps` must be at least 1. Received: steps={steps}")
    if len(tokens) % steps:
        raise ValueError(
            f"`tokens` must be of a multiple of {steps} batches: leave out the last "
            f"{len(tokens) % steps}. Received: {len(tokens)} batches"
        )
    if any(number < 0 for number in tokens):
        raise ValueError(f"`tokens` must not be negative. Received: {min(tokens)}")
    weights = []
    for first in range(0, len(tokens), steps):
        update = [int(number) for number in tokens[first : first + steps]]
        whole = sum(update)
        weights += [steps * number / whole if whole else 0.0 for number in update]
    return weights

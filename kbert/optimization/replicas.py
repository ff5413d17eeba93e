"""Losses of a batch that several replicas share: sums over replicas.

A replica is a copy of the model that computes on its examples of a batch (`tf.distribute`). Keras
takes the mean over the examples of each replica, and then the mean of these; where replicas have
different numbers of examples, or of tokens that count, that is not the mean over the batch. Here
every denominator is a sum over all replicas, so that the gradients summed over replicas are those
of one device with the whole batch. On one device, and on other backends, nothing changes.
"""

from typing import Any

import keras
from keras import ops

from kbert.optimization.tensorflow_update import tensorflow


def replica_context() -> Any:
    """Returns TensorFlow's context of the current replica, or None where there is only one."""
    if keras.backend.backend() != "tensorflow":
        return None
    # None too outside the graph of a single replica, for example when Keras infers shapes.
    context = tensorflow().distribute.get_replica_context()
    return None if context is None or context.num_replicas_in_sync == 1 else context


def over_replicas(*values: Any) -> list[Any]:
    """Returns the sum of each value over all replicas; no gradient flows through it.

    Args:
        *values: arrays, each of the same shape in all replicas.

    Returns:
        The sums, or the values where there is only one replica.
    """
    context = replica_context()
    if context is None:
        return list(values)
    return list(context.all_reduce("SUM", [ops.stop_gradient(value) for value in values]))


def whole_batch_loss(loss: Any, rows: Any) -> Any:
    """Converts a loss averaged over a replica's examples to this replica's part of the batch loss.

    With l_r the mean over the n_r examples of replica r, the loss of the batch is
    L = sum_r n_r l_r / sum_r n_r. Keras computes l_r / R, with R replicas. What is returned has the
    gradient of n_r l_r / sum_r n_r, so that the sum over the replicas is the gradient of L; and the
    value L / R, from which Keras reports L.

    Args:
        loss: scalar, from Keras' `compute_loss`.
        rows: n_r, the number of examples.
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

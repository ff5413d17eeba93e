"""A training step in two passes, so that a contrastive batch may be larger than memory allows.

Source: Gao et al. 2021, "Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup"
(arXiv:2101.06983), GradCache.
"""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from kbert.gradients import gradients_forgotten

_SEED_STATE = "seed_generator_state"


@gradients_forgotten()
def cached_train_step(model: Any, data: Any, chunk_rows: int) -> Any:
    """Runs a training step on a batch of B examples, `chunk_rows` of them in memory at a time.

    First the vectors of all chunks are computed without gradients; then the loss of the whole batch
    and its gradients by the vectors; then each chunk again, to take these on to the weights. What
    dropout leaves out is the same in both passes.

    Raises:
        ValueError: several replicas share the batch.
    """
    if model.replication.is_active:
        raise ValueError(
            "`chunk_rows` must be None where replicas share a batch, which each has its part of. "
            f"Received: chunk_rows={chunk_rows}"
        )
    x, y, weight = keras.utils.unpack_x_y_sample_weight(data)
    rows = tf.shape(x["token_ids"])[0]
    seeds = [v for v in model.variables if v.path.endswith(_SEED_STATE)]
    before = [tf.identity(seed.value) for seed in seeds]
    vectors = _vectors(model, x, rows, chunk_rows)
    with tf.GradientTape() as tape:
        tape.watch(vectors)
        loss = model.compute_loss(x, y, vectors, weight, training=True)
        scaled = model.optimizer.scale_loss(loss)
    # Of the weights themselves: a regularizer's.
    weights = [weight.value for weight in model.trainable_weights]
    upstream, *direct = tape.gradient(scaled, [vectors, *weights])
    for seed, value in zip(seeds, before):
        seed.assign(value)
    found = _gradients(model, x, rows, chunk_rows, upstream, direct)
    model._loss_tracker.update_state(loss, sample_weight=rows)
    model.optimizer.apply_gradients(zip(found, model.trainable_weights))
    return model.compute_metrics(x, y, vectors, sample_weight=weight)


def _chunk(x: dict[str, Any], start: Any, chunk_rows: int) -> dict[str, Any]:
    return {name: column[start : start + chunk_rows] for name, column in x.items()}


def _vectors(model: Any, x: Any, rows: Any, chunk_rows: int) -> Any:
    """Returns the vectors of all examples (B, K, D), without gradients."""
    shape = (None, x["token_ids"].shape[1], model.width)
    dtype = tf.float64 if model.compute_dtype == "float64" else tf.float32
    array = tf.TensorArray(dtype, 0, True, infer_shape=False, element_shape=shape)

    def advance(start: Any, number: Any, array: Any) -> Any:
        vectors = model(_chunk(x, start, chunk_rows), training=True)
        return start + chunk_rows, number + 1, array.write(number, vectors)

    _, _, array = _each(rows, advance, tf.constant(0), array)
    return tf.stop_gradient(array.concat())


def _gradients(
    model: Any, x: Any, rows: Any, chunk_rows: int, upstream: Any, direct: list[Any]
) -> list[Any]:
    """Returns the gradients of the weights, given those of the vectors (B, K, D).

    To these come `direct`; where there is neither, a weight has None, as in any other step.
    """
    weights = model.trainable_weights
    reached = [one is not None for one in direct]

    def advance(start: Any, *sums: Any) -> Any:
        with tf.GradientTape() as tape:
            vectors = model(_chunk(x, start, chunk_rows), training=True)
        found = tape.gradient(
            vectors, [v.value for v in weights], upstream[start : start + chunk_rows]
        )
        reached[:] = [before or g is not None for before, g in zip(reached, found)]
        # Those of an embedding are slices of its table.
        dense = [s if g is None else s + tf.convert_to_tensor(g) for s, g in zip(sums, found)]
        return start + chunk_rows, *dense

    begun = [tf.zeros(v.shape, v.dtype) if d is None else d for v, d in zip(weights, direct)]
    _, *sums = _each(rows, advance, *begun)
    return [total if is_reached else None for total, is_reached in zip(sums, reached)]


def _each(rows: Any, advance: Callable[..., Any], *state: Any) -> Any:
    """Runs a function over the starts of all chunks, one after the other."""
    first = (tf.constant(0), *state)
    return tf.while_loop(lambda start, *_: start < rows, advance, first, parallel_iterations=1)

"""Batching of concurrent requests within the graph of an export, after each was checked alone.

TensorFlow's op BatchFunction joins the rows of calls of a graph that meet. A server's own batching
joins requests before the graph can look at them: one of a wrong rank fails all of its batch, or
ends the server. Source: tensorflow, `core/kernels/batch_kernels.cc`.
"""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import tensorflow as tf

from kbert.serving.export.request_checks import InputLimits, checked
from kbert.serving.format.batching_file import LENGTHS, MAX_BATCH_SIZE
from kbert.serving.format.joined_requests import (
    IMAGE,
    MOST_IMAGE_BYTES,
    MOST_TEXT_BYTES,
    MOST_TOKENS,
)

_NOT_INLINED = {"_noinline": True}
_Function = Callable[..., dict[str, Any]]


@dataclass(frozen=True)
class GraphBatching:
    """Batching in the graph: requests of fewer than `max_batch_size` rows may share a batch.

    `num_batch_threads` batches run at a time, as many as pay if it is 0, which TensorFlow finds out
    meanwhile; while they do, requests gather for the next one. A request that finds
    `max_enqueued_batches` full ones waiting is refused (UNAVAILABLE).
    """

    max_batch_size: int = MAX_BATCH_SIZE
    num_batch_threads: int = 0
    max_enqueued_batches: int = 16

    def as_json(self) -> dict[str, Any]:
        """Returns the numbers for kbert.json."""
        return asdict(self)


def batching_of(max_batch_size: int) -> GraphBatching | None:
    """Returns batching of so many rows, None for 0 or 1; ValueError for another number."""
    if not isinstance(max_batch_size, int) or max_batch_size < 0:
        raise ValueError(
            "`max_batch_size` must be an integer of at least 0. "
            f"Received: max_batch_size={max_batch_size!r}"
        )
    return GraphBatching(max_batch_size) if max_batch_size > 1 else None


def can_join(specs: Sequence[tf.TensorSpec], limits: InputLimits) -> bool:
    """Returns whether requests to a function of such inputs can share a batch.

    Further dimensions must be fixed, or those of token rows, which are padded to the most tokens.
    """
    if all(spec.shape[1:].is_fully_defined() for spec in specs):
        return True
    return any(spec.name == LENGTHS for spec in specs) and limits.max_sequence_length > 0


def served_function(
    function: _Function,
    specs: Sequence[tf.TensorSpec],
    limits: InputLimits,
    batching: GraphBatching | None,
) -> _Function:
    """Returns a function that checks a request, and lets it share a batch; graph code.

    `function` takes tensors (B, ...) of these specs, and returns tensors (B, ...) by name.
    """

    def served(*inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        found = checked(inputs, specs, limits)
        if batching is None or not can_join(specs, limits):
            return function(*found)
        return _joined(function, specs, limits, batching, found)

    return served


def _joined(
    function: _Function,
    specs: Sequence[tf.TensorSpec],
    limits: InputLimits,
    batching: GraphBatching,
    inputs: list[tf.Tensor],
) -> dict[str, tf.Tensor]:
    # Not inlined: a graph visits each node of the branch that it does not take.
    alone = tf.function(
        lambda *rows: function(*rows), specs, autograph=False, experimental_attributes=_NOT_INLINED
    ).get_concrete_function()
    is_wide = [not spec.shape[1:].is_fully_defined() for spec in specs]
    most = limits.max_sequence_length
    wide = [tf.TensorSpec((None, most), s.dtype) if w else s for s, w in zip(specs, is_wide)]

    def trimmed(*rows: tf.Tensor) -> dict[str, tf.Tensor]:
        if not any(is_wide):
            return alone(*rows)
        longest = tf.reduce_max(rows[[spec.name for spec in specs].index(LENGTHS)])
        return alone(*(one[:, :longest] if w else one for one, w in zip(rows, is_wide)))

    # A function around it, as BatchFunction would run its own without TensorFlow's optimizations.
    joined = tf.function(trimmed, wide, autograph=False).get_concrete_function()

    def batched() -> list[tf.Tensor]:
        rows = [_padded(one, most) if wide else one for one, wide in zip(inputs, is_wide)]
        # Exports that are loaded into one process must not share a queue.
        queue = uuid.uuid4().hex
        outputs = tf.raw_ops.BatchFunction(
            in_tensors=rows,
            captured_tensors=joined.captured_inputs,
            f=joined,
            **asdict(batching),
            batch_timeout_micros=0,
            Tout=[output.dtype for output in joined.outputs],
            shared_name=queue,
            batching_queue=queue,
            enable_large_batch_splitting=False,
        )
        return [tf.ensure_shape(one, like.shape) for one, like in zip(outputs, alone.outputs)]

    rows = tf.shape(inputs[0])[0]
    joins = (rows > 0) & (rows < batching.max_batch_size) & _is_small(specs, inputs)
    found = tf.cond(joins, batched, lambda: tf.nest.flatten(alone(*inputs)))
    return tf.nest.pack_sequence_as(alone.structured_outputs, found)


def _padded(rows: tf.Tensor, width: int) -> tf.Tensor:
    return tf.pad(rows, [[0, 0], [0, width - tf.shape(rows)[1]]])


def _is_small(specs: Sequence[tf.TensorSpec], inputs: Sequence[tf.Tensor]) -> Any:
    if strings := [one for one in inputs if one.dtype == tf.string]:
        sizes = [tf.reduce_sum(tf.strings.length(one)) for one in strings]
        images = any(spec.name == IMAGE for spec in specs)
        return tf.add_n(sizes) <= (MOST_IMAGE_BYTES if images else MOST_TEXT_BYTES)
    return tf.size(inputs[0]) <= MOST_TOKENS

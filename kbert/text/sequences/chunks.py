"""Application of a function to many sequences in chunks of bounded size, as graph code."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf


def map_in_chunks(
    function: Callable[[tf.Tensor], Sequence[tf.Tensor]],
    lengths: tf.Tensor,
    chunk_cells: int,
    outputs: Sequence[tf.TensorSpec],
    at_once: int = 1,
) -> list[tf.Tensor]:
    """Applies a function to sequences, longest first, as many at a time as fit.

    Sequences of similar length share a chunk: little padding, and few chunks are in memory.

    Args:
        function: takes the indices of some sequences, int32 (k,), and returns tensors.
        lengths: int32 (W,), the length of each sequence, at least 1.
        chunk_cells: the most positions, sequences times longest sequence, of a chunk; a longer
            sequence is a chunk of its own.
        outputs: a spec for each of the tensors; the first dimension may differ between chunks.
        at_once: how many chunks may run in parallel. More than one pays for a function of many
            small steps, each too small for all cores; and only without side effects (reading a
            variable is one).

    Returns:
        For each output the tensors of all chunks, concatenated; see `places_in_chunks`.
    """
    order = _longest_first(lengths)
    total = tf.size(order)
    arrays = [
        tf.TensorArray(
            spec.dtype,
            size=0,
            dynamic_size=True,
            infer_shape=False,
            element_shape=(None, *spec.shape[1:]),
        ).write(0, tf.zeros((0, *spec.shape[1:]), spec.dtype))  # or there may be nothing to join
        for spec in outputs
    ]

    def unfinished(start: tf.Tensor, number: tf.Tensor, arrays: Any) -> tf.Tensor:
        return start < total

    def advance(start: tf.Tensor, number: tf.Tensor, arrays: Any) -> Any:
        width = tf.gather(lengths, order[start])
        end = tf.minimum(total, start + tf.maximum(1, chunk_cells // width))
        found = function(order[start:end])
        written = [array.write(number, tensor) for array, tensor in zip(arrays, found, strict=True)]
        return end, number + 1, written

    _, _, arrays = tf.while_loop(
        unfinished,
        advance,
        (tf.constant(0), tf.constant(1), arrays),
        parallel_iterations=at_once,
    )
    return [array.concat() for array in arrays]


def places_in_chunks(lengths: tf.Tensor) -> tf.Tensor:
    """Returns each sequence's index in outputs of `map_in_chunks` with one row per sequence.

    Args:
        lengths: int32 (W,), the length of each sequence.

    Returns:
        int32 (W,): gathering an output by them puts it into the order of the sequences.
    """
    return tf.math.invert_permutation(_longest_first(lengths))


def _longest_first(lengths: tf.Tensor) -> tf.Tensor:
    return tf.argsort(lengths, direction="DESCENDING", stable=True)

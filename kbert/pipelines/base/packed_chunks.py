"""Application of a model to packed texts in chunks of similar length, as graph code."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from kbert.pipelines.base.signatures import model_inputs
from kbert.text.graph_functions import map_in_chunks, places_in_chunks
from kbert.text.sequences.packing import PackedText

# Enough rows for matrix products at full speed, few enough to leave most of the padding out.
CHUNK_CELLS = 512


def packed_chunks(
    function: Callable[[dict[str, Any]], tf.Tensor],
    packed: PackedText,
    width: int,
    chunk_cells: int = CHUNK_CELLS,
) -> tf.Tensor:
    """Applies a function to packed texts, in chunks of similar length.

    A batch in the order of its requests is up to half padding; here each chunk is only as long as
    its own longest text.

    Args:
        function: maps the inputs of `Bert`, (k, T), to floats (k, width).
        packed: B packed texts.
        width: numbers that the function returns a text.
        chunk_cells: the most positions of a chunk, texts times the longest, padding included.

    Returns:
        float32 (B, width), in the order of the texts.
    """

    def run(chosen: tf.Tensor) -> list[tf.Tensor]:
        longest = tf.reduce_max(tf.gather(packed.lengths, chosen))
        inputs = model_inputs(packed)
        found = function({k: tf.gather(v[:, :longest], chosen) for k, v in inputs.items()})
        return [tf.cast(found, tf.float32)]

    outputs = [tf.TensorSpec((None, width), tf.float32)]
    (found,) = map_in_chunks(run, packed.lengths, chunk_cells, outputs)
    return tf.gather(found, places_in_chunks(packed.lengths))

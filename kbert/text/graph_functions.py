"""Graph functions on texts: traced once and cached, checked, and applied chunk by chunk."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf


def cached_graph(
    owner: Any,
    function: Callable[..., Any],
    settings: Sequence[Any],
    specs: Sequence[Any],
) -> Any:
    """Returns a function as a graph, traced again only after a setting has changed.

    The graph is cached with its owner, the model or tokenizer that the function reads, under the
    function's qualified name and its number of arguments. `settings` are all values, beside the
    owner's weights, that are constants of the traced graph, and `specs` those of the arguments.
    """
    # Not as an attribute: Keras would track it.
    graphs = owner.__dict__.setdefault("_cached_graphs", {})
    key = function.__qualname__, len(specs)
    before, graph = graphs.get(key, (None, None))
    if before != list(settings):
        graph = tf.function(function, input_signature=specs, autograph=False)
        # TensorFlow counts the traces of all graphs of one function, and would warn of retracing
        # in a process with several models.
        graph._omit_frequent_tracing_warning = True
        graphs[key] = list(settings), graph
    return graph


def checked_text(text: Any) -> tf.Tensor:
    """Returns texts as a string tensor (B,); a TypeError or ValueError says what they are else."""
    if isinstance(text, list | tuple) and not text:
        return tf.zeros((0,), tf.string)
    try:
        text = tf.convert_to_tensor(text)
    except (ValueError, TypeError) as error:  # whose words are of sequences and of types
        raise TypeError(f"`text` must be a list of strings. Received: {text!r:.80}") from error
    if text.dtype != tf.string:
        raise TypeError(f"`text` must be of dtype string. Received: dtype={text.dtype.name}")
    if text.shape.rank != 1:
        hint = "; a dataset must be batched, as by `.batch(32)`" if text.shape.rank == 0 else ""
        raise ValueError(f"`text` must have the shape (B,). Received: shape={text.shape}{hint}")
    return text


def map_in_chunks(
    function: Callable[[tf.Tensor], Sequence[tf.Tensor]],
    lengths: tf.Tensor,
    chunk_cells: int,
    outputs: Sequence[tf.TensorSpec],
    at_once: int = 1,
    twice: bool = False,
) -> list[tf.Tensor]:
    """Applies a function to sequences, longest first, as many at a time as fit.

    Sequences of similar length share a chunk: little padding, and few chunks are in memory.

    The function takes the indices of some sequences, int32 (k,), and returns tensors, with a spec
    each in `outputs`, whose first dimension may differ between chunks. What it returned for all
    chunks is concatenated; see `places_in_chunks`.

    Args:
        lengths: int32 (W,), the length of each sequence, at least 1.
        chunk_cells: the most positions, sequences times longest sequence, of a chunk; a longer
            sequence is a chunk of its own.
        at_once: how many chunks may run in parallel. More than one pays for a function of many
            small steps, each too small for all cores; and only without side effects (reading a
            variable is one).
        twice: whether the graph has the function twice, in the loop and without one, for sequences
            that are one chunk: a loop costs a request hundreds of nodes. For small functions.
    """
    order = _longest_first(lengths)

    def chunks() -> list[tf.Tensor]:
        return _in_loop(function, order, lengths, chunk_cells, outputs, at_once)

    if not twice:
        return chunks()
    longest = tf.reduce_max(tf.pad(lengths, [[0, 1]]))
    cells = tf.size(order, tf.int64) * tf.cast(longest, tf.int64)
    is_one = (cells > 0) & (cells <= chunk_cells)
    return list(tf.cond(is_one, lambda: list(function(order)), chunks))


def _in_loop(
    function: Callable[[tf.Tensor], Sequence[tf.Tensor]],
    order: tf.Tensor,
    lengths: tf.Tensor,
    chunk_cells: int,
    outputs: Sequence[tf.TensorSpec],
    at_once: int,
) -> list[tf.Tensor]:
    total = tf.size(order)
    arrays = []
    for spec in outputs:
        shape = (None, *spec.shape[1:])
        array = tf.TensorArray(spec.dtype, 0, True, infer_shape=False, element_shape=shape)
        # Or there may be nothing to join.
        arrays.append(array.write(0, tf.zeros((0, *shape[1:]), spec.dtype)))

    def advance(start: tf.Tensor, number: tf.Tensor, arrays: Any) -> Any:
        width = tf.gather(lengths, order[start])
        end = tf.minimum(total, start + tf.maximum(1, chunk_cells // width))
        found = function(order[start:end])
        written = [array.write(number, tensor) for array, tensor in zip(arrays, found, strict=True)]
        return end, number + 1, written

    first = (tf.constant(0), tf.constant(1), arrays)
    _, _, arrays = tf.while_loop(
        lambda start, *_: start < total, advance, first, parallel_iterations=at_once
    )
    return [array.concat() for array in arrays]


def places_in_chunks(lengths: tf.Tensor) -> tf.Tensor:
    """Returns each sequence's index in outputs of `map_in_chunks` with one row per sequence.

    Gathering an output by them puts it into the order of the sequences, of int32 lengths (W,).
    """
    return tf.math.invert_permutation(_longest_first(lengths))


def row_ids(ragged: tf.RaggedTensor) -> tf.Tensor:
    """Returns the row of each value, of the type of `row_splits`.

    As `value_rowids`, with fewer nodes in the graph, which a short request waits for.
    """
    splits = ragged.row_splits
    places = tf.range(tf.shape(ragged.values, splits.dtype)[0])
    return tf.cast(tf.searchsorted(splits, places, side="right"), splits.dtype) - 1


def kept_values(ragged: tf.RaggedTensor, mask: tf.Tensor) -> tf.RaggedTensor:
    """Keeps the values of rows for which the flat `mask` is true.

    As `tf.ragged.boolean_mask`, with fewer nodes in the graph.
    """
    counts = tf.pad(tf.cumsum(tf.cast(mask, ragged.row_splits.dtype)), [[1, 0]])
    values = tf.gather(ragged.values, tf.squeeze(tf.where(mask), axis=1))
    splits = tf.gather(counts, ragged.row_splits)
    return tf.RaggedTensor.from_row_splits(values, splits, validate=False)


def _longest_first(lengths: tf.Tensor) -> tf.Tensor:
    return tf.argsort(lengths, direction="DESCENDING", stable=True)

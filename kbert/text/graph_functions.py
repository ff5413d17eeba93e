"""Graph functions on texts: their argument is checked, and each is traced once and cached."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf


def cached_graph(
    owner: Any,
    function: Callable[..., Any],
    settings: Sequence[Any] = (),
    specs: Sequence[tf.TensorSpec] | None = None,
) -> Any:
    """Returns a function as a graph, traced again only after a setting has changed.

    Args:
        owner: The model or tokenizer that the function reads; the graph is cached with it, under
            the function's qualified name.
        function: From tensors to tensors.
        settings: All values, beside the owner's weights, that are constants of the traced graph.
        specs: Specs of its arguments; None for one graph per signature of the arguments.
    """
    # Not as an attribute: Keras would track it.
    graphs = owner.__dict__.setdefault("_cached_graphs", {})
    before, graph = graphs.get(function.__qualname__, (None, None))
    if before != list(settings):
        signature = None if specs is None else list(specs)
        graph = tf.function(function, input_signature=signature, autograph=False)
        # TensorFlow counts the traces of all graphs of one function, and would warn of retracing
        # in a process with several models.
        graph._omit_frequent_tracing_warning = True
        graphs[function.__qualname__] = list(settings), graph
    return graph


def checked_text(text: Any) -> tf.Tensor:
    """Returns texts as a string tensor (B,); a TypeError or ValueError says what they are else."""
    text = tf.convert_to_tensor(text)
    if text.dtype != tf.string:
        raise TypeError(f"`text` must be of dtype string. Received: dtype={text.dtype.name}")
    if text.shape.rank != 1:
        raise ValueError(f"`text` must have the shape (B,). Received: shape={text.shape}")
    return text

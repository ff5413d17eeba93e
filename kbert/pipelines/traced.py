"""Functions of a model as graphs that are kept."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf


def traced(
    model: Any,
    function: Callable[..., dict[str, Any]],
    specs: Sequence[tf.TensorSpec],
    settings: Sequence[str],
) -> Any:
    """A function as a graph, traced once for a model, and anew when a setting has changed.

    Args:
        model: what the graph belongs to, and is kept with.
        function: a method of the model; its name tells it from others.
        specs: of its arguments.
        settings: the attributes of the model, beside its weights, that the graph holds as they
            were when it was traced.
    """
    # Not as an attribute: Keras would look into it.
    known = model.__dict__.setdefault("_graphs_of_functions", {})
    values = [getattr(model, name) for name in settings]
    before, graph = known.get(function.__name__, (None, None))
    if before != values:
        graph = tf.function(function, input_signature=list(specs), autograph=False)
        known[function.__name__] = values, graph
    return graph

"""Functions that write out their own gradient."""

import functools
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import keras
from keras import ops

_WANTED: ContextVar[bool] = ContextVar("gradients_are_wanted", default=True)


def own_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """Applies `keras.ops.custom_gradient`, except within `without_gradients`."""
    with_gradient = ops.custom_gradient(function)

    @functools.wraps(function)
    def called(*args: Any) -> Any:
        if not _WANTED.get():
            return function(*args)[0]
        found = with_gradient(*args)
        if keras.backend.backend() == "tensorflow":
            _keep_with_graph(keras.tree.flatten(found)[0])
        return found

    return called


def _keep_with_graph(result: Any) -> None:
    """Lets the graph of a tensor own the custom gradient that made the tensor.

    TensorFlow enters the custom gradients of graphs in a table of the process, for ever; they hold
    tensors, so that no graph with one, and nothing that it uses, would ever be freed.
    """
    graph = getattr(result, "graph", None)  # an eager tensor has none
    if graph is None:
        return
    table = _table()
    name = result.op.get_attr("_gradient_op_type").decode()
    gradient = table[name]["type"]
    setattr(graph, name, gradient)
    kept = weakref.ref(gradient, lambda _: table.pop(name, None))

    def while_it_lives(*upstream: Any) -> Any:
        found = kept()
        if found is None:
            raise RuntimeError("A gradient was asked for whose graph is gone.")
        return found(*upstream)

    table[name]["type"] = while_it_lives


@contextmanager
def without_gradients() -> Iterator[None]:
    """Lets functions be traced without their custom gradients.

    TensorFlow keeps such gradients with a saved graph, and in a table of the process that loads it,
    which keeps the model alive for ever.
    """
    token = _WANTED.set(False)
    try:
        yield
    finally:
        _WANTED.reset(token)


@contextmanager
def gradients_forgotten() -> Iterator[None]:
    """Takes the custom gradients of what is traced within out of TensorFlow's table of them.

    A training step applies them while it is traced, and nothing asks for them again. Some are
    TensorFlow's own, as that of a sum over replicas, and would keep the graph for ever.
    """
    if keras.backend.backend() != "tensorflow":
        yield
        return
    table = _table()
    before = set(table)
    try:
        yield
    finally:
        for name in set(table) - before:
            if name.startswith("CustomGradient-"):
                table.pop(name, None)


def _table() -> dict[str, dict[str, Any]]:
    """Returns TensorFlow's table of gradients, by name."""
    from tensorflow.python.framework.ops import gradient_registry

    found: dict[str, dict[str, Any]] = gradient_registry._registry
    return found

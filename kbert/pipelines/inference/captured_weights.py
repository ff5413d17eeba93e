"""Weights that a graph reads once before its loops, instead of in each iteration."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import keras
import tensorflow as tf


class CapturedWeights(keras.StatelessScope):
    """Scope from which Keras takes the value of each variable.

    Values are created once per graph, outside the loops that read them, and only those that are
    read: a graph stores what it captures.

    Args:
        value: returns the tensor for a variable, as graph code, or None for the variable itself.
    """

    def __init__(self, value: Callable[[Any], Any]) -> None:
        super().__init__()
        self._value = value
        self._graph = tf.compat.v1.get_default_graph()
        self._made: dict[int, Any] = {}

    def get_current_value(self, variable: Any) -> Any:
        """Returns the tensor that replaces a variable, or None."""
        if id(variable) not in self._made:
            with self._graph.as_default():
                self._made[id(variable)] = self._value(variable)
        return self._made[id(variable)]


@contextmanager
def captured_weights() -> Iterator[None]:
    """Makes the layers of a graph use the weights' values at the start of the context.

    A loop that reads variables counts as one with side effects, and its iterations wait for each
    other, even independent ones. Nothing may be assigned within. Without a graph it does nothing.
    """
    if tf.executing_eagerly():
        yield
        return

    def value(variable: Any) -> Any:
        around = scope.original_scope  # an export's substitutes for weights
        found = None if around is None else around.get_current_value(variable)
        # Not `.value`: that asks the scope, and in a layer it has the layer's precision.
        return tf.convert_to_tensor(variable._value) if found is None else found

    with (scope := CapturedWeights(value)):
        yield

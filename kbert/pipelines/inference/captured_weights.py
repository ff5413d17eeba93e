"""Weights that a graph reads before its loops, and not in each of their turns."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import keras
import tensorflow as tf


class CapturedWeights(keras.StatelessScope):
    """Keras asks it for the value of each variable.

    Values are made once a graph, outside the loops that read them, and only those that are read:
    what a graph captures is stored.

    Args:
        value: gives the tensor for a variable, as graph code, or None for the variable itself.
    """

    def __init__(self, value: Callable[[Any], Any]) -> None:
        super().__init__()
        self._value = value
        self._graph = tf.compat.v1.get_default_graph()
        self._made: dict[int, Any] = {}

    def get_current_value(self, variable: Any) -> Any:
        """The tensor that stands for a variable, or None."""
        if id(variable) not in self._made:
            with self._graph.as_default():
                self._made[id(variable)] = self._value(variable)
        return self._made[id(variable)]


@contextmanager
def captured_weights() -> Iterator[None]:
    """Lets the layers of a graph compute with weights as they are where this begins.

    A loop in which variables are read counts as one with effects, and its turns wait for each
    other, also those that have nothing in common. Nothing may be assigned within. Without a graph
    it does nothing.
    """
    if tf.executing_eagerly():
        yield
        return

    def value(variable: Any) -> Any:
        around = scope.original_scope  # what an export computes with instead
        found = None if around is None else around.get_current_value(variable)
        # Not `.value`: that asks the scope, and in a layer it has the layer's precision.
        return tf.convert_to_tensor(variable._value) if found is None else found

    with (scope := CapturedWeights(value)):
        yield

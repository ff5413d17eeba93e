"""Weights of a decoder that runs in a loop, in few variables of the loop.

TensorFlow passes each tensor that a loop reads from one step to the next, by three nodes of its
graph. Most weights of a decoder are vectors, biases and LayerNorms, a dozen a layer.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import keras
import tensorflow as tf

from kbert.pipelines.inference import CapturedWeights


class LoopWeights(CapturedWeights):
    """Scope in which the vectors among some variables are read from matrices, one a width.

    Args:
        variables: the variables of a model.
    """

    def __init__(self, variables: Sequence[Any]) -> None:
        super().__init__(self.outer_value)
        groups: dict[tuple[int, str], list[Any]] = {}
        for variable in variables:
            if len(variable.shape) == 1:
                groups.setdefault((variable.shape[0], variable.dtype), []).append(variable)
        # variable -> its group, and its row there
        self._rows = {id(v): (g, row) for g in groups.values() for row, v in enumerate(g)}
        self._matrices: dict[int, Any] = {}
        self._unstacked: dict[tuple[int, int], list[Any]] = {}

    def get_current_value(self, variable: Any) -> Any:
        """Returns the tensor that replaces a variable."""
        if id(variable) not in self._rows or self.constant(variable) is not None:
            return super().get_current_value(variable)
        group, row = self._rows[id(variable)]
        if id(group) not in self._matrices:
            with self._graph.as_default():
                self._matrices[id(group)] = tf.stack([self.outer_value(v) for v in group])
        # Once in each graph, so that a loop within this one has the matrix as its variable.
        key = id(group), id(tf.compat.v1.get_default_graph())
        if key not in self._unstacked:
            self._unstacked[key] = tf.unstack(self._matrices[id(group)])
        return self._unstacked[key][row]


@contextmanager
def loop_weights(model: keras.Model) -> Iterator[None]:
    """Makes layers use the weights' values at the start of the context, as `captured_weights` does.

    Args:
        model: the model whose layers run within loops.
    """
    if tf.executing_eagerly():
        yield
        return
    with LoopWeights(model.variables):
        yield

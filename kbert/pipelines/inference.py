"""Graph code of inference: weights read once before loops, and texts in chunks of one length."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Self

import keras
import numpy as np
import tensorflow as tf

from kbert.pipelines.signatures import model_inputs
from kbert.text.graph_functions import map_in_chunks, places_in_chunks
from kbert.text.sequences.packing import PackedText

# Enough rows for matrix products at full speed, few enough to leave most of the padding out, and
# for both of two threads to have chunks.
CHUNK_CELLS = 256
# Threads that work at chunks of their own wait less for each other than those that share products.
_CHUNKS_AT_ONCE = 4


class CapturedWeights(keras.StatelessScope):
    """Scope from which Keras takes the value of each variable.

    `value` returns the tensor for a variable, as graph code, or None for the variable itself. It is
    called once per graph, outside the loops that read the variable, and only for those that are
    read: a graph stores what it captures. `constant` returns an array for a variable that becomes
    a constant, here and in scopes within, else None: one in each graph that reads it, the body of a
    loop too, since a product with what a loop captured is no product with a constant. `around` is
    the scope in which this one is entered.
    """

    def __init__(
        self,
        value: Callable[[Any], Any],
        constant: Callable[[Any], np.ndarray | None] = lambda variable: None,
    ) -> None:
        super().__init__()
        self._value, self._constant = value, constant
        self._graph = tf.compat.v1.get_default_graph()
        self._made: dict[tuple[int, Any], Any] = {}
        self.around: CapturedWeights | None = None

    def __enter__(self) -> Self:
        self.around = _INNERMOST.get()
        _INNERMOST.set(self)
        super().__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)
        _INNERMOST.set(self.around)

    def get_current_value(self, variable: Any) -> Any:
        """Returns the tensor that replaces a variable, or None."""
        return self._once(variable, self._value)

    def read(self, variable: tf.Variable) -> tf.Tensor:
        """Returns the value of a variable of TensorFlow, or a constant in its place."""
        return self._once(variable, tf.convert_to_tensor)

    def constant(self, variable: Any) -> np.ndarray | None:
        """Returns the array for a variable that is a constant of this scope or of one around it."""
        array = self._constant(variable)
        if array is None and self.around is not None:
            return self.around.constant(variable)
        return array

    def outer_value(self, variable: Any) -> tf.Tensor:
        """Returns the value that a variable has outside of this scope."""
        around = self.original_scope  # an export's substitutes for weights
        found = None if around is None else around.get_current_value(variable)
        return value_of(variable) if found is None else found

    def _once(self, variable: Any, value: Callable[[Any], Any]) -> Any:
        array, graph = self.constant(variable), self._graph
        if array is not None:
            graph = tf.compat.v1.get_default_graph()
        key = id(variable), graph
        if key not in self._made:
            with graph.as_default():
                self._made[key] = value(variable) if array is None else tf.constant(array)
        return self._made[key]


_INNERMOST: ContextVar[CapturedWeights | None] = ContextVar("captured_weights", default=None)


def value_of(variable: Any) -> tf.Tensor:
    """Returns the value of a Keras variable, whatever scope replaces it."""
    # Not `.value`: that asks the scope, and in a layer it has the layer's precision.
    return tf.convert_to_tensor(variable._value)


def innermost_weights() -> CapturedWeights:
    """Returns the innermost scope of captured weights; there must be one."""
    scope = _INNERMOST.get()
    if scope is None:
        raise RuntimeError("`innermost_weights` must be called within `CapturedWeights`.")
    return scope


def read_once(variable: tf.Variable) -> tf.Tensor:
    """Returns the value of a variable, read outside the loops of a graph; see `CapturedWeights`."""
    scope = _INNERMOST.get()
    return tf.convert_to_tensor(variable) if scope is None else scope.read(variable)


@contextmanager
def captured_weights() -> Iterator[None]:
    """Makes the layers of a graph use the weights' values at the start of the context.

    A loop that reads variables counts as one with side effects, and its iterations wait for each
    other, even independent ones. Nothing may be assigned within. Without a graph it does nothing.
    """
    if tf.executing_eagerly():
        yield
        return

    scope = CapturedWeights(lambda variable: scope.outer_value(variable))
    with scope:
        yield


def map_side_by_side(
    function: Callable[[tf.Tensor], Sequence[tf.Tensor]],
    lengths: tf.Tensor,
    chunk_cells: int,
    outputs: Sequence[tf.TensorSpec],
) -> list[tf.Tensor]:
    """Does as `map_in_chunks` for a function that reads weights; several chunks run at once."""
    with captured_weights():
        return map_in_chunks(function, lengths, chunk_cells, outputs, _CHUNKS_AT_ONCE)


def packed_chunks(
    function: Callable[[dict[str, Any]], tf.Tensor],
    packed: PackedText,
    width: int,
    chunk_cells: int = CHUNK_CELLS,
) -> tf.Tensor:
    """Applies a function to packed texts, in chunks of similar length.

    A batch in the order of its requests is up to half padding; here each chunk is only as long as
    its own longest text, and has at most `chunk_cells` positions, padding included.

    Args:
        function: maps the inputs of `Bert`, (k, T), to floats (k, width).
        packed: B packed texts.
        width: numbers that the function returns a text.

    Returns:
        float32 (B, width), in the order of the texts.
    """

    def run(chosen: tf.Tensor) -> list[tf.Tensor]:
        longest = tf.reduce_max(tf.gather(packed.lengths, chosen))
        inputs = model_inputs(packed)
        found = function({k: tf.gather(v[:, :longest], chosen) for k, v in inputs.items()})
        return [tf.cast(found, tf.float32)]

    outputs = [tf.TensorSpec((None, width), tf.float32)]
    (found,) = map_side_by_side(run, packed.lengths, chunk_cells, outputs)
    return tf.gather(found, places_in_chunks(packed.lengths))

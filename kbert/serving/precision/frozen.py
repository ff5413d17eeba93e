"""Weights of encoders as constants of an exported graph.

oneDNN packs a constant matrix once, for its kernels; a variable it packs again at each product: of
one short text's time that is about a fifth.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from kbert.layers.embeddings import TokenEmbedding
from kbert.serving.precision.integer_products import Codes

# A graph is a protocol buffer, which ends at 2 GiB.
_MOST_BYTES = 1_500_000_000
_FROZEN = ("float32", "bfloat16")
# The method of an encoder that is replaced while a graph is traced.
_CALL = keras.layers.Layer.call.__name__


class FrozenEncoders:
    """The float weights of models' encoders as arrays, tables that are looked up excepted.

    Args:
        models: Keras models with an `encoder`.
        is_kept: whether a variable, though it could be frozen, remains one.

    Raises:
        ValueError: there is no encoder, or its weights do not fit into a graph.
    """

    def __init__(self, models: Iterable[Any], is_kept: Callable[[Any], bool]) -> None:
        found = (getattr(model, "encoder", None) for model in models)
        self._encoders = [one for one in found if isinstance(one, keras.Model)]
        self._functions: dict[int, Callable[..., Any]] = {}
        # By identity: Keras variables compare by value.
        self._arrays: dict[int, np.ndarray] = {}
        for encoder in self._encoders:
            layers = encoder._flatten_layers()
            tables = {id(layer.embeddings) for layer in layers if isinstance(layer, TokenEmbedding)}
            for variable in encoder.weights:
                if variable.dtype in _FROZEN and id(variable) not in tables:
                    if not is_kept(variable):
                        self._arrays[id(variable)] = np.asarray(variable)
        size = sum(array.nbytes for array in self._arrays.values())
        if not 0 < size <= _MOST_BYTES:
            raise ValueError(
                "`frozen` must be False for a model without an encoder of float weights, and for "
                f"one with more than {_MOST_BYTES:,} bytes of weights beside its tables. "
                f"Received: {size:,} bytes"
            )

    def add(self, codes: Iterable[Codes]) -> None:
        """Makes constants of matrices of integers that the encoders' layers multiply."""
        for one in codes:
            self._arrays |= {id(part): part.numpy() for part in (one.codes, one.scales)}

    def constant(self, variable: Any) -> np.ndarray | None:
        """Returns the array for a variable that is frozen, else None."""
        return self._arrays.get(id(variable))

    @contextmanager
    def as_functions(self, captured: Callable[[], AbstractContextManager[Any]]) -> Iterator[None]:
        """Makes each encoder one function of the graph, so that its constants are stored once.

        All signatures call that function; TensorFlow puts its nodes in the places of the calls.
        `captured` makes the scope in which the function's own graph finds its weights.
        """
        with ExitStack() as stack:
            for encoder in self._encoders:
                if id(encoder) not in self._functions:
                    self._functions[id(encoder)] = _as_function(encoder.call, captured)
                setattr(encoder, _CALL, self._functions[id(encoder)])
                stack.callback(delattr, encoder, _CALL)
            yield


def _as_function(
    call: Callable[..., Any], captured: Callable[[], AbstractContextManager[Any]]
) -> Callable[..., Any]:
    def encode(inputs: dict[str, Any]) -> Any:
        with captured():
            return call(inputs, training=False)

    encoded = tf.function(encode, autograph=False)

    def called(inputs: dict[str, Any], training: bool | None = None) -> Any:
        return encoded(inputs)

    return called

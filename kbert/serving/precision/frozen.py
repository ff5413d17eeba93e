"""Weights of encoders and translators as constants of an exported graph.

oneDNN packs a constant matrix once, for its kernels; a variable it packs again at each product: of
one short text's time that is about a fifth, and of one sentence's translation, which multiplies
each matrix of the decoder for each token, up to a half.
"""

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from kbert.layers.embeddings import TokenEmbedding
from kbert.pipelines.inference import CapturedWeights, innermost_weights
from kbert.serving.format.signatures import SERVING_DEFAULT
from kbert.serving.precision.integer_products import Codes

# A graph is a protocol buffer, which ends at 2 GiB.
_MOST_BYTES = 1_500_000_000
_FROZEN = ("float32", "bfloat16")
# The methods that are replaced while a graph is traced.
_CALL, _LOGITS = keras.layers.Layer.call.__name__, TokenEmbedding.logits.__name__

_Source = Callable[[CapturedWeights], tf.Tensor]


class FrozenWeights:
    """The float weights of models' networks as arrays, tables that are looked up excepted.

    An encoder's are constants of all signatures, and stored once. A translator's are constants of
    the search's steps: what is read once a sentence would gain little, and stays a variable; and
    only where it translates: another signature, which searches too, would store them again.

    Args:
        models: Keras models with an `encoder`, or translators, with a `transformer`.
        is_kept: whether a variable, though it could be frozen, remains one.

    Raises:
        ValueError: there is no network, or its weights do not fit into a graph.
    """

    def __init__(self, models: Iterable[Any], is_kept: Callable[[Any], bool]) -> None:
        models = list(models)
        self._encoders = _networks(models, "encoder")
        self._functions: dict[int, Callable[..., Any]] = {}
        # By identity: Keras variables compare by value.
        self._arrays: dict[int, np.ndarray] = {}
        self._tables: list[tuple[TokenEmbedding, np.ndarray]] = []
        translators = _networks(models, "transformer")
        for network in (*self._encoders, *translators):
            layers = [one for one in network._flatten_layers() if isinstance(one, TokenEmbedding)]
            tables = {id(layer.embeddings): layer for layer in layers}
            for variable in network.weights:
                if variable.dtype not in _FROZEN or is_kept(variable):
                    continue
                if (table := tables.get(id(variable))) is None:
                    self._arrays[id(variable)] = np.asarray(variable)
                elif network in translators:
                    self._tables.append((table, np.asarray(variable)))
        size = sum(a.nbytes for a in (*self._arrays.values(), *(a for _, a in self._tables)))
        if not 0 < size <= _MOST_BYTES:
            raise ValueError(
                "`frozen` must be False for a model without an encoder or an encoder-decoder of "
                f"float weights, and for one with more than {_MOST_BYTES:,} bytes of weights "
                f"beside its tables. Received: {size:,} bytes"
            )

    def add(self, codes: Iterable[Codes]) -> None:
        """Makes constants of matrices of integers that the networks' layers multiply."""
        for one in codes:
            self._arrays |= {id(part): part.numpy() for part in (one.codes, one.scales)}

    def are_in(self, signature: str) -> bool:
        """Returns whether a signature computes with the constants."""
        return bool(self._encoders) or signature == SERVING_DEFAULT

    def constant(self, variable: Any, function: tf.Graph) -> np.ndarray | None:
        """Returns the array for a variable that the present graph has as a constant, else None.

        Args:
            variable: of Keras or of TensorFlow.
            function: the graph of the signature, or of an encoder, within which the present one is.
        """
        array = self._arrays.get(id(variable))
        return array if self._encoders or _is_of_steps(function) else None

    @contextmanager
    def as_functions(self) -> Iterator[None]:
        """Makes each encoder one function of the graph, so that its constants are stored once.

        All signatures call that function; TensorFlow puts its nodes in the places of the calls. In
        steps of a search the tables of a translator make logits of constants.
        """
        with ExitStack() as stack:
            for encoder in self._encoders:
                if id(encoder) not in self._functions:
                    self._functions[id(encoder)] = _EncoderFunction(encoder.call)
                setattr(encoder, _CALL, self._functions[id(encoder)])
                stack.callback(delattr, encoder, _CALL)
            function = tf.compat.v1.get_default_graph()
            for table, array in self._tables:
                setattr(table, _LOGITS, functools.partial(_logits, table, array, function))
                stack.callback(delattr, table, _LOGITS)
            yield


def _networks(models: Iterable[Any], name: str) -> list[keras.Model]:
    found = (getattr(model, name, None) for model in models)
    return [one for one in found if isinstance(one, keras.Model)]


def _is_of_steps(function: tf.Graph) -> bool:
    """Returns whether the present graph is of a loop in a loop: steps of the search of a chunk."""
    graph = tf.compat.v1.get_default_graph()
    return graph is not function and getattr(graph, "outer_graph", function) is not function


def _logits(
    table: TokenEmbedding, array: np.ndarray, function: tf.Graph, states: tf.Tensor
) -> tf.Tensor:
    """Returns what `table.logits` does, in steps of a search as a product with a constant."""
    if not _is_of_steps(function):
        return type(table).logits(table, states)
    product = tf.matmul(states, tf.constant(array.T, states.dtype))
    # Only a product with a bias has its constant matrix packed, and TensorFlow leaves out a bias of
    # zeros. This one changes no logit: it is the least normal number.
    least = np.full(len(array), np.finfo(np.float32).tiny)
    return tf.nn.bias_add(product, tf.constant(least, states.dtype))


class _EncoderFunction:
    """A call of an encoder as a function that graphs call, each with the variables that it read.

    So a graph reads them outside of its loops, whose iterations can run side by side.
    """

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call
        self._made: dict[Any, tuple[Any, list[_Source]]] = {}

    def __call__(self, inputs: dict[str, tf.Tensor], training: bool | None = None) -> Any:
        specs = {k: tf.TensorSpec([None] * v.shape.rank, v.dtype) for k, v in inputs.items()}
        key = tuple(sorted(specs.items()))
        if key not in self._made:
            self._made[key] = self._traced(specs)
        function, sources = self._made[key]
        scope = innermost_weights()
        function.set_external_captures([source(scope) for source in sources])
        return function(inputs)

    def _traced(self, specs: dict[str, tf.TensorSpec]) -> tuple[Any, list[_Source]]:
        weights = _WeightsOfCallers()

        def encode(inputs: dict[str, tf.Tensor]) -> Any:
            with weights:
                return self._call(inputs, training=False)

        function = tf.function(encode, autograph=False).get_concrete_function(specs)
        return function, [weights.sources[id(one)] for one in function.captured_inputs]


class _WeightsOfCallers(CapturedWeights):
    """Scope of a function: constants, and for the rest the values of the scope that calls it.

    `sources` are, by the identity of a tensor that the function captures, how a scope gives it.
    """

    def __init__(self) -> None:
        super().__init__(lambda variable: None)
        self.sources: dict[int, _Source] = {}

    def get_current_value(self, variable: Any) -> Any:
        return self._given(variable, CapturedWeights.get_current_value)

    def read(self, variable: tf.Variable) -> tf.Tensor:
        return self._given(variable, CapturedWeights.read)

    def _given(self, variable: Any, method: Callable[[CapturedWeights, Any], Any]) -> Any:
        if self.around is None or self.constant(variable) is not None:
            return method(self, variable)
        tensor = method(self.around, variable)
        self.sources[id(tensor)] = lambda scope: method(scope, variable)
        return tensor

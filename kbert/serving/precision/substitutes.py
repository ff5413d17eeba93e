"""Substitutes of a model's variables, with which an export computes."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial, wraps
from itertools import chain
from typing import Any

import keras
import tensorflow as tf

from kbert.layers.embeddings import TokenEmbedding
from kbert.pipelines.inference import CapturedWeights, value_of
from kbert.serving.format.signatures import SERVING_DEFAULT
from kbert.serving.precision.frozen import FrozenWeights
from kbert.serving.precision.integer_products import integer_products
from kbert.serving.precision.rounding import integer_layers, integer_matrices, product_matrix
from kbert.serving.precision.small_weights import (
    HalfWeight,
    Int8Weight,
    is_stored_as_half,
    is_stored_as_int8,
)

# The method of a table that is replaced while a graph is traced.
_LOOK_UP = TokenEmbedding.look_up.__name__


class WeightSubstitutes:
    """Substitutes of variables, used while the functions of models' common export are traced."""

    def __init__(self, models: Iterable[Any]) -> None:
        self._models = [model for model in models if isinstance(model, keras.Model)]
        # By identity: Keras variables compare by value.
        self._shared: dict[int, Any] = {}
        self._frozen: FrozenWeights | None = None
        self._small: dict[int, Int8Weight | HalfWeight] = {}

    def share(self, variable: Any, kept: Any) -> None:
        """Stores `kept` instead of `variable`, which has the same values."""
        if variable is not kept:  # models may have one encoder object
            self._shared[id(variable)] = kept

    def store_small(self, precision: str | None) -> None:
        """Stores large weights as `Int8Weight` for "int8", else those that fit as `HalfWeight`."""
        fits = is_stored_as_int8 if (is_int8 := precision == "int8") else is_stored_as_half
        for model in self._models:
            roundings = integer_matrices(model) if is_int8 else {}
            for variable in model.weights:
                kept = self._shared.get(id(variable), variable)
                if id(kept) in self._small or not fits(kept):
                    continue
                rounding = roundings.get(id(variable))
                self._small[id(kept)] = Int8Weight(kept, rounding) if is_int8 else HalfWeight(kept)

    def freeze(self) -> None:
        """Makes weights constants, see `FrozenWeights`; of int8 those that are multiplied so."""
        kept = {key for key, stored in self._small.items() if isinstance(stored, Int8Weight)}
        self._frozen = FrozenWeights(self._models, lambda variable: id(variable) in kept)
        self._frozen.add(self._stored(product_matrix(one)) for one in self._integer_layers())

    @property
    def is_frozen(self) -> bool:
        """Returns whether weights of encoders or translators are constants."""
        return self._frozen is not None

    @property
    def multiplies_integers(self) -> bool:
        """Returns whether layers multiply integers."""
        return bool(self._integer_layers())

    @property
    def stores_int8(self) -> bool:
        """Returns whether weights are stored as int8."""
        return any(isinstance(stored, Int8Weight) for stored in self._small.values())

    def function(
        self, function: Callable[..., Any], signature: str = SERVING_DEFAULT
    ) -> Callable[..., Any]:
        """Returns graph code of a signature, which computes with the substitutes of variables."""
        frozen = self._frozen
        if frozen is not None and not frozen.are_in(signature):
            frozen = None
        if not self._shared and not self._small and frozen is None:
            return function

        @wraps(function)
        def computed(*arguments: Any) -> Any:
            functions = nullcontext() if frozen is None else frozen.as_functions()
            products = integer_products(self._integer_layers(), self._stored)
            with captured(), self._rows(), products, functions:
                return function(*arguments)

        def captured() -> CapturedWeights:
            if frozen is None:
                return CapturedWeights(self._value)
            graph = tf.compat.v1.get_default_graph()
            return CapturedWeights(self._read, partial(frozen.constant, function=graph))

        return computed

    def _value(self, variable: Any) -> Any:
        """Returns the value of a variable's substitute, as graph code; None if it has none."""
        kept, stored = self._shared.get(id(variable)), self._stored(variable)
        if stored is not None:
            return stored.matrix()
        return None if kept is None else kept.value

    def _read(self, variable: Any) -> tf.Tensor:
        value = self._value(variable)
        return value_of(variable) if value is None else value

    def _stored(self, variable: Any) -> Any:
        return self._small.get(id(self._shared.get(id(variable), variable)))

    def _integer_layers(self) -> list[Any]:
        return [one for m in self._models if self.stores_int8 for one in integer_layers(m)]

    @contextmanager
    def _rows(self) -> Iterator[None]:
        """Makes embedding tables that are stored small look up rows before they dequantize."""
        layers = chain.from_iterable(model._flatten_layers() for model in self._models)
        tables = [layer for layer in layers if isinstance(layer, TokenEmbedding)]
        with ExitStack() as stack:
            for layer in tables if self._small else ():
                stored = self._stored(layer.embeddings)
                if stored is not None:
                    setattr(layer, _LOOK_UP, partial(_rows, stored, layer.compute_dtype))
                    stack.callback(delattr, layer, _LOOK_UP)
            yield


def _rows(stored: Int8Weight | HalfWeight, dtype: str, ids: Any) -> tf.Tensor:
    return tf.cast(stored.rows(ids), dtype)

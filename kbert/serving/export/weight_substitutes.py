"""Substitutes that an export stores for some variables of a model: shared ones, or smaller ones."""

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import keras

from kbert.layers.core.token_embedding import TokenEmbedding
from kbert.pipelines.inference.captured_weights import CapturedWeights
from kbert.serving.export.half_weights import HalfWeight, is_stored_as_half
from kbert.serving.export.int8_weights import Int8Weight, is_stored_as_int8

# The method of a table that is replaced while a graph is traced.
_LOOK_UP = TokenEmbedding.look_up.__name__


class WeightSubstitutes:
    """Substitutes of variables, used while the functions of an export are traced.

    Args:
        models: The models that are exported together.
    """

    def __init__(self, models: Iterable[Any]) -> None:
        self._models = [model for model in models if isinstance(model, keras.Model)]
        # By identity: Keras variables compare by value.
        self._shared: dict[int, Any] = {}
        self._small: dict[int, Int8Weight | HalfWeight] = {}

    def share(self, variable: Any, kept: Any) -> None:
        """Substitutes one variable for another.

        Args:
            variable: The variable that is not stored.
            kept: The variable that is stored instead, of the same values.
        """
        if variable is not kept:  # models may have one encoder object
            self._shared[id(variable)] = kept

    def store_small(self, precision: str | None) -> None:
        """Stores large weights in fewer bytes.

        Args:
            precision: "int8" for `Int8Weight`, of all large weights; otherwise `HalfWeight`, of
                those that it represents exactly.
        """
        fits, stored = (
            (is_stored_as_int8, Int8Weight)
            if precision == "int8"
            else (is_stored_as_half, HalfWeight)
        )
        for model in self._models:
            for variable in model.weights:
                kept = self._shared.get(id(variable), variable)
                if id(kept) not in self._small and fits(kept):
                    self._small[id(kept)] = stored(kept)

    @property
    def stores_int8(self) -> bool:
        """Returns whether weights are stored as int8."""
        return any(isinstance(stored, Int8Weight) for stored in self._small.values())

    def function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a function that computes with the substitutes of the variables.

        Args:
            function: Graph code.
        """
        if not self._shared and not self._small:
            return function

        @functools.wraps(function)
        def computed(*arguments: Any) -> Any:
            with CapturedWeights(self._value), self._rows():
                return function(*arguments)

        return computed

    def _value(self, variable: Any) -> Any:
        """Returns the value of a variable's substitute, as graph code; None if it has none."""
        kept = self._shared.get(id(variable))
        stored = self._small.get(id(variable if kept is None else kept))
        if stored is not None:
            return stored.matrix()
        return None if kept is None else kept.value

    @contextmanager
    def _rows(self) -> Iterator[None]:
        """Makes embedding tables that are stored small look up rows before they dequantize."""
        with ExitStack() as stack:
            for model in self._models if self._small else ():
                for layer in model._flatten_layers():
                    if not isinstance(layer, TokenEmbedding):
                        continue
                    table = layer.embeddings
                    stored = self._small.get(id(self._shared.get(id(table), table)))
                    if stored is not None:
                        setattr(layer, _LOOK_UP, stored.rows)
                        stack.callback(delattr, layer, _LOOK_UP)
            yield

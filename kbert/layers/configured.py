"""Layers whose configuration is the arguments of their constructors."""

import inspect
from typing import Any

import keras


def constructor_arguments(made: Any) -> dict[str, Any]:
    """Returns the attributes of an object that are named as arguments of its constructor.

    Where a constructor takes `*args`, those of the base class come first. What Keras can make again
    (initializers, models) is in its serialized form.
    """
    found: dict[str, Any] = {}
    for owner in type(made).__mro__:
        if "__init__" not in vars(owner):
            continue
        parameters = inspect.signature(vars(owner)["__init__"]).parameters.values()
        named = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        found = {name: getattr(made, name) for name in named[1:]} | found  # without `self`
        if all(p.kind is not p.VAR_POSITIONAL for p in parameters):
            break
    serialized = keras.saving.serialize_keras_object
    return {k: serialized(v) if hasattr(v, "get_config") else v for k, v in found.items()}


class ConfiguredLayer(keras.layers.Layer):
    """Base class of layers that keep each argument of their constructor as an attribute."""

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **constructor_arguments(self)}


class ShapeKeepingLayer(ConfiguredLayer):
    """Base class of layers whose outputs have the shape, and Keras' implicit mask, of the input."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True

    def compute_output_shape(self, input_shape: Any, *args: Any, **kwargs: Any) -> Any:
        return input_shape

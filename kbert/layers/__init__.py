"""The building blocks of a Transformer as Keras layers, written with `keras.ops` alone.

`kbert.layers.SelfAttention` and the others are loaded when they are first used (PEP 562).
"""

import importlib
import sys
from functools import cache
from typing import Any

from kbert.keras_names import NAMES


@cache
def _modules() -> dict[str, str]:
    """Returns public name -> the module that holds it: every class that registers with Keras."""
    return {
        name: f"kbert.{module}"
        for module, names in NAMES.items()
        if module.startswith("layers.")
        for name in names.split()
    }


def __getattr__(name: str) -> Any:
    """Loads a layer from its module, once; `__all__` are their names."""
    if name == "__all__":
        return sorted(_modules())
    if name not in _modules():
        message = f"module 'kbert.layers' has no attribute {name!r}"
        raise AttributeError(message, name=name, obj=sys.modules[__name__])
    value = getattr(importlib.import_module(_modules()[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Lists the layers, loaded or not."""
    return sorted(_modules())

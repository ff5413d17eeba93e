"""The building blocks of a Transformer as Keras layers, written with `keras.ops` alone.

`kbert.layers.SelfAttention` and the others are loaded when they are first used (PEP 562).
"""

import importlib
import sys
from typing import Any

from kbert.keras_names import NAMES

# Public name -> the module that holds it: every class that registers with Keras.
_MODULE_OF = {
    name: f"kbert.{module}"
    for module, names in NAMES.items()
    if module.startswith("layers.")
    for name in names.split()
}
__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    """Loads a layer from its module, once."""
    if name not in _MODULE_OF:
        message = f"module 'kbert.layers' has no attribute {name!r}"
        raise AttributeError(message, name=name, obj=sys.modules[__name__])
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Lists the layers, loaded or not."""
    return list(__all__)

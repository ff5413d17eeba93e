"""SavedModels for TF Serving: written, checked, and run with and without Python.

`kbert.serving.Client` is imported lazily, on first use (PEP 562).
"""

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if name == "Client":
        return importlib.import_module("kbert.serving.client.client").Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

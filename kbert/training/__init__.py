"""Training: a configuration goes in, a finished run directory comes out."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kbert.training.distributed.strategies import strategy

__all__ = ["strategy"]


def __getattr__(name: str) -> Any:
    """Loads `strategy` when it is first used: it needs TensorFlow, which takes seconds."""
    if name not in __all__:
        raise AttributeError(f"module 'kbert.training' has no attribute {name!r}")
    return getattr(importlib.import_module("kbert.training.distributed.strategies"), name)

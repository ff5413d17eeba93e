"""The programs of benchmarks/, which find their own parts beside them."""

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def program(
    in_checkout: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], ModuleType]:
    """Loads a program by its name, as it is loaded where it is run."""
    monkeypatch.syspath_prepend(str(in_checkout("benchmarks")))
    return importlib.import_module

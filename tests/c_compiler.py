"""A mark for tests that build the loader of SavedModels, which is written in C."""

import os
import shutil

import pytest

needs_compiler = pytest.mark.skipif(
    shutil.which(os.environ.get("CC") or "gcc") is None,
    reason="no C compiler: install gcc to run SavedModels without Python",
)

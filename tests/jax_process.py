"""Processes with Keras on JAX that cannot find TensorFlow, as if it were not installed.

That kbert does not need it there can be seen in no other way: where TensorFlow is installed, Keras
itself imports it on every backend as soon as it serializes anything
(`keras.initializers.serialize` asks whether it is there).
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_WITHOUT_TENSORFLOW = """
import sys

class NoTensorFlow:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("tensorflow", "tensorflow_text", "tf_keras"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NoTensorFlow())
"""


def skip_without_jax() -> None:
    """Skips the test where JAX is not installed."""
    pytest.importorskip("jax", reason="no JAX: pip install jax to run Keras on it")


def jax_command(program: str, *arguments: str) -> list[str]:
    """The command line of a program; see `jax_environment`."""
    return [sys.executable, "-c", _WITHOUT_TENSORFLOW + program, *arguments]


def jax_environment(**more: str) -> dict[str, str]:
    """The variables of a process with Keras on JAX, on the CPU."""
    return {**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", **more}


def run_on_jax(program: str, *arguments: str, folder: Path) -> str:
    """Runs a program to its end; skips the test where JAX is not installed.

    Args:
        program: source text.
        *arguments: what it finds in `sys.argv[1:]`.
        folder: where it runs, the root of the checkout.

    Returns:
        What it prints.
    """
    skip_without_jax()
    run = subprocess.run(
        jax_command(program, *arguments),
        cwd=folder,
        env=jax_environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return run.stdout

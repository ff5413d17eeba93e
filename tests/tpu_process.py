"""Runs programs that need tensorflow-tpu, in a Python that has it."""

import os
import subprocess
from pathlib import Path

import pytest

from kbert.tpu_check.tpu_chips import CHIPS, variables_of_a_machine

PYTHON = "KBERT_TPU_PYTHON"
_ROOT = Path(__file__).parent.parent


def run_with_tpu_packages(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end; skips the test where no Python with tensorflow-tpu is named.

    Args:
        program: source of the program.
        arguments: what it finds in `sys.argv[1:]`.
    """
    python = os.environ.get(PYTHON)
    if not python:
        pytest.skip(f"needs tensorflow-tpu: make .venv-tpu, and {PYTHON}=.venv-tpu/bin/python")
    return subprocess.run(
        [python, "-c", program, *arguments],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            **variables_of_a_machine(CHIPS["v5e"]),
            "PYTHONPATH": str(_ROOT),
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "KERAS_BACKEND": "tensorflow",
        },
        timeout=900,
    )

"""Runs programs that need transformers, in a Python that has it."""

import os
import subprocess
import sys

import pytest


def run_with_transformers(program: str, *arguments: str) -> str:
    """Runs a program to its end; skips the test where no Python has transformers.

    Args:
        program: source of the program.
        arguments: what it finds in `sys.argv[1:]`.

    Returns:
        What it printed.
    """
    done = subprocess.run(
        [_python(), "-c", program, *arguments],
        capture_output=True,
        text=True,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"HF_HUB_OFFLINE": "1"},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def _python() -> str:
    """This Python, or that of KBERT_PEER_PYTHON."""
    given = os.environ.get("KBERT_PEER_PYTHON")
    if given:
        return given
    pytest.importorskip("transformers", reason="needs transformers here or in KBERT_PEER_PYTHON")
    pytest.importorskip("torch", reason="needs torch here or in KBERT_PEER_PYTHON")
    return sys.executable

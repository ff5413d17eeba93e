"""Processes whose CPU is two devices, so that two replicas can train in them.

TensorFlow divides a CPU only before its first use of it, and not where other tests have used it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def two_devices() -> None:
    """Divides the CPU of this process in two; to be called before TensorFlow is used."""
    import tensorflow as tf

    (processor,) = tf.config.list_physical_devices("CPU")
    half = tf.config.LogicalDeviceConfiguration()
    tf.config.set_logical_device_configuration(processor, [half, half])


def result_of(module: str, folder: Path, *arguments: str) -> Any:
    """Runs a module of the tests as a program, and returns the JSON of its last line.

    Args:
        module: its name, `tests.x`.
        folder: where it runs, the root of the checkout.
        *arguments: what it finds in `sys.argv[1:]`.
    """
    run = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=folder,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=550,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout.splitlines()[-1])

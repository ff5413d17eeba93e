"""The environment of a run: versions, machine, devices."""

import os
import platform
import sys
from importlib import metadata
from typing import Any

import tensorflow as tf

import kbert

PACKAGES = (
    "tensorflow",
    "tensorflow-text",
    "keras",
    "numpy",
    "safetensors",
    "scikit-learn",
    "scipy",
)
VARIABLES = ("KERAS_BACKEND", "TF_ENABLE_ONEDNN_OPTS", "XLA_FLAGS", "CUDA_VISIBLE_DEVICES")


def environment() -> dict[str, Any]:
    """Returns the versions and the machine as a dict of JSON types."""
    return {
        "kbert": kbert.__version__,
        "python": sys.version.split()[0],
        "packages": {name: _version(name) for name in PACKAGES},
        "platform": platform.platform(),
        "processors": len(os.sched_getaffinity(0)),
        "devices": [device.name for device in tf.config.list_physical_devices()],
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None

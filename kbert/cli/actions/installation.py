"""The facts of an installation for bug reports, without importing TensorFlow: versions, machine."""

import json
import os
import platform
import re
import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

import kbert
from kbert.extras import DISTRIBUTION

# Flags of /proc/cpuinfo that decide how fast matrices are multiplied, by their common names.
CPU_FLAGS = {
    "AVX2": ("avx2",),
    "AVX-512": ("avx512f",),
    "VNNI": ("avx512_vnni", "avx_vnni"),
    "AVX512-BF16": ("avx512_bf16",),
    "AMX": ("amx_tile",),
}
_CPUS, _MEMORY = Path("/proc/cpuinfo"), Path("/proc/meminfo")


def versions() -> dict[str, str | None]:
    """Returns the versions that matter in a bug report, by name; None for what is not installed."""
    found = {name: _version(name) for name in ("tensorflow", "tensorflow-text", "keras")}
    tensorflow = found["tensorflow"] or _version("tensorflow-tpu")
    return {
        "kbert": kbert.__version__,
        "Python": platform.python_version(),
        **{**found, "tensorflow": tensorflow},
        "Keras backend": keras_backend(),
        "platform": platform.platform(),
    }


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def keras_backend() -> str:
    """Returns the backend that Keras will choose: of KERAS_BACKEND, its file, or its default."""
    home = Path(os.environ.get("KERAS_HOME") or os.path.expanduser("~/.keras"))
    try:
        said = json.loads((home / "keras.json").read_text(encoding="utf-8")).get("backend")
    except (OSError, ValueError, AttributeError):
        said = None
    return os.environ.get("KERAS_BACKEND") or said or "tensorflow"


def packages() -> tuple[dict[str, str | None], dict[str, list[str]], list[str]]:
    """Returns the required packages with their versions, the extras, and what is wrong.

    The extras are {name: the packages that it lacks}, none for one that is complete. A package that
    is required is wrong where it is absent or of a version that setup.cfg does not allow.
    """
    try:
        required = [Requirement(one) for one in metadata.requires(DISTRIBUTION) or []]
    except metadata.PackageNotFoundError:
        return {}, {}, []  # found on the path alone: nothing says what it needs
    base = [one for one in required if one.marker is None or one.marker.evaluate({"extra": ""})]
    found = {one.name: _version(one.name) for one in base}
    extras: dict[str, list[str]] = {}
    for name in metadata.metadata(DISTRIBUTION).get_all("Provides-Extra") or []:
        wanted = [one for one in required if one not in base and one.marker is not None]
        own = [one for one in wanted if one.marker and one.marker.evaluate({"extra": name})]
        extras[name] = [one.name for one in own if _version(one.name) is None]
    wrong = [
        f"{one} must be installed. Received: {found[one.name] or 'none'}"
        for one in base
        if not (version := found[one.name]) or not one.specifier.contains(version, True)
    ]
    return found, extras, wrong


def machine() -> dict[str, Any]:
    """Returns the processor's cores and flags, free memory and disk in bytes; None if unknown."""
    said = _CPUS.read_text(encoding="utf-8") if _CPUS.is_file() else ""
    flags = set(" ".join(re.findall(r"^flags\s*:(.*)$", said, re.M)).split())
    model = re.search(r"^model name\s*:\s*(.*)$", said, re.M)
    disk = shutil.disk_usage(".")
    return {
        "cpu": {
            "name": model[1] if model else platform.processor() or platform.machine(),
            "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
            "flags": {k: any(f in flags for f in v) for k, v in CPU_FLAGS.items()}
            if flags
            else None,
        },
        "memory": {"free": _memory("MemAvailable"), "total": _memory("MemTotal")},
        "disk": {"free": disk.free, "total": disk.total},
    }


def _memory(name: str) -> int | None:
    said = _MEMORY.read_text(encoding="utf-8") if _MEMORY.is_file() else ""
    found = re.search(rf"^{name}:\s*(\d+) kB", said, re.M)
    return int(found[1]) * 1024 if found else None

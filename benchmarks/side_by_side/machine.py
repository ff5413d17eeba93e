"""The machine that something is measured on."""

import os
import platform
from pathlib import Path
from typing import Any

_FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_tile")
# Taken before anything runs: it tells whether other programs had the cores.
_LOAD = os.getloadavg()[0]


def machine() -> dict[str, Any]:
    """The facts of this machine that bear on speed."""
    found: dict[str, str] = {}
    if Path("/proc/cpuinfo").exists():
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            found.setdefault(key.strip(), value.strip())
    flags = set(found.get("flags", "").split())
    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": found.get("model name", platform.machine()),
        "flags": [flag for flag in _FLAGS if flag in flags],
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "load_before": round(_LOAD, 1),
        "python": platform.python_version(),
    }

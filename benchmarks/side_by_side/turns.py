"""A contender's side of a comparison: it waits for its turn, works, and answers.

Requests and answers are JSON objects, one a line, on standard input and output.
"""

import importlib.metadata
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Turns:
    """The line to the script that compares. Made first of all, before heavy imports."""

    def __init__(self) -> None:
        # Libraries print to standard output as well: they get standard error instead.
        self._answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        self.settings: dict[str, Any] = json.loads(sys.argv[1])

    def ready(self, *packages: str, **facts: Any) -> None:
        """Says that all is loaded and warm, with the versions of the packages that matter."""
        versions = {package: importlib.metadata.version(package) for package in packages}
        self.answer(ready=True, versions=versions, **facts)

    def wait(self) -> dict[str, Any] | None:
        """The next request, or None at the end."""
        line = sys.stdin.readline()
        return json.loads(line) if line.strip() else None

    def answer(self, **values: Any) -> None:
        """Answers the request."""
        self._answers.write(json.dumps(values) + "\n")
        self._answers.flush()

    def serve(self, works: dict[str, Callable[[], Any]]) -> None:
        """Times the work that each request names: one call to get warm, then `repeats` calls."""
        while (request := self.wait()) is not None:
            milliseconds = timed(works[request["work"]], request["repeats"])
            self.answer(milliseconds=milliseconds, peak_mib=peak_memory())


def timed(work: Callable[[], Any], repeats: int) -> list[float]:
    """Milliseconds of each of `repeats` calls, after one call that does not count."""
    work()
    milliseconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        milliseconds.append(1e3 * (time.perf_counter() - start))
    return milliseconds


def seconds(work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds of one call: by the clock, and of the processor, all threads together."""
    clock, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - cpu


def peak_memory() -> int:
    """The most memory that this process has held so far, in MiB."""
    # What Linux says of a child by `getrusage` begins with its parent's peak.
    found = _of_this_process("VmHWM")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024 if found is None else found


def memory() -> int | None:
    """What this process holds now, in MiB; None where the system does not tell."""
    return _of_this_process("VmRSS")


def _of_this_process(name: str) -> int | None:
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    found = [int(line.split()[1]) // 1024 for line in lines if line.startswith(f"{name}:")]
    return found[0] if found else None


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))

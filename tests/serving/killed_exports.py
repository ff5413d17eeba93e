"""Exports killed at random moments, while another process reads all versions that it sees.

    python -m tests.serving.killed_exports BASE KILLS SEED

prints what happened as JSON. TensorFlow is imported once; each export runs in a fork.
"""

import hashlib
import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import kbert.serving.export.export as saved_model
from tests.serving.tiny_models import Meter

NAME = "meter"
KEEP = 3


def content_of(folder: Path) -> dict[str, str]:
    """Each file of a folder -> its SHA-256."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
    }


def read_on(base: Path, stop: Path, found: Path) -> None:
    """A reader that polls: what each version held when it was first seen."""
    seen: dict[str, Any] = {}
    polls, torn = 0, []
    while not stop.exists():
        polls += 1
        folder = base / NAME
        for child in list(folder.iterdir()) if folder.is_dir() else []:
            if not child.name.isdigit() or child.name in seen:
                continue
            try:
                seen[child.name] = content_of(child)
            except FileNotFoundError:
                if child.exists():
                    torn.append(child.name)
        config = base / "model.config"
        if config.exists() and not config.read_text().endswith("}\n"):
            torn.append("model.config")
        time.sleep(0.001)
    found.write_text(json.dumps({"seen": seen, "polls": polls, "torn": torn}))


def export_on(base: Path, times: int) -> None:
    """Exports again and again."""
    for _ in range(times):
        saved_model.export(Meter(), base, NAME, keep=KEEP, max_batch_size=2)


def forked(work: Any, *arguments: Any) -> int:
    """Runs a function in a fork that says nothing."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        work(*arguments)
        code = 0
    finally:
        os._exit(code)


def main(base: Path, kills: int, seed: int) -> dict[str, Any]:
    """Kills so many exports, and lets one end well.

    Args:
        base: An empty folder.
        kills: How many.
        seed: Of the moments.
    """
    draw = random.Random(seed)
    stop, found = base.with_name("stop"), base.with_name("found.json")
    reader = forked(read_on, base, stop, found)
    start = time.perf_counter()
    ended = [os.waitpid(forked(export_on, base, 1), 0)[1]]
    length = time.perf_counter() - start
    midway = 0
    for _ in range(kills):
        child = forked(export_on, base, 1000)
        time.sleep(draw.uniform(0.0, 2.0) * length)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        midway += any(path.name.startswith(".") for path in (base / NAME).iterdir())
    ended.append(os.waitpid(forked(export_on, base, 1), 0)[1])
    stop.touch()
    ended.append(os.waitpid(reader, 0)[1])
    left = {path.name: content_of(path) for path in sorted((base / NAME).iterdir())}
    return {"ended": ended, "midway": midway, "left": left, **json.loads(found.read_text())}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))

"""`kbert serve` in a process of its own, so that whoever asks shares no interpreter with it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

READY_SECONDS = 600
SCRIPTS = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class ServingProcess:
    """A server that runs.

    Args:
        pid: Its process.
        rest: Its address over REST.
        grpc: Its address over gRPC.
        log: What it writes.
    """

    pid: int
    rest: str
    grpc: str
    log: Path

    def memory_mib(self) -> float:
        """What it holds of the memory."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        return int(lines["VmRSS"].split()[0]) / 1024


@contextmanager
def serving(base: Path, *options: str) -> Iterator[ServingProcess]:
    """Serves while the block runs.

    Args:
        base: As `kbert serve` takes it.
        options: More of its options.
    """
    command = [sys.executable, "-m", "kbert.cli.main", "serve", str(base)]
    command += ["--rest-port", "0", "--grpc-port", "0", *options]
    with running(command, base.parent / "serve.log") as process:
        yield process


@contextmanager
def running(command: list[str], log: Path) -> Iterator[ServingProcess]:
    """Runs a server while the block runs.

    Args:
        command: Starts it; it prints {"rest": ..., "grpc": ...} when it listens.
        log: Where what it writes goes.

    Raises:
        RuntimeError: It ended; the message has the end of its log.
    """
    with log.open("w") as errors:
        options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": errors, "cwd": SCRIPTS}
        with subprocess.Popen(command, text=True, **options) as process:
            try:
                assert process.stdout is not None
                line = process.stdout.readline()
                if not line:
                    raise RuntimeError(f"the server has ended: {log.read_text()[-2000:]}")
                told = json.loads(line)
                yield ServingProcess(process.pid, told["rest"], told["grpc"], log)
            finally:
                process.terminate()
                process.wait(READY_SECONDS)

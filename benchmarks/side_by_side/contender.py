"""Contenders that take turns: A B C A B C ..., so that a drifting machine hits all alike."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).resolve().parents[1]


class Contender:
    """A program that answers requests, see `turns`, in a process of its own.

    Attributes:
        name: what tables call it.
        works: the kinds of work that it does; it is passed over for others.
        facts: what it said when it was ready: versions and more.
        answers: its answers by kind of work, one a round.
        failure: why it could not be run, or "".
    """

    def __init__(
        self,
        name: str,
        module: str,
        works: Sequence[str],
        python: str = sys.executable,
        **settings: Any,
    ) -> None:
        self.name = name
        self.works = works
        self.facts: dict[str, Any] = {}
        self.answers: dict[str, list[dict[str, Any]]] = {}
        self.failure = ""
        self._command = [python, "-m", module, json.dumps(settings)]
        self._process: subprocess.Popen[str] | None = None
        self._errors = tempfile.TemporaryFile("w+")

    def start(self) -> None:
        """Starts it and waits until it is warm."""
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=SCRIPTS,
            env={"TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow", **os.environ},
        )
        self.facts = self._read() or {}

    def turn(self, work: str, **request: Any) -> None:
        """Lets it do a piece of work; the answer is added to `answers`."""
        pipe = self._process.stdin if self._process else None
        if pipe is None or self.failure or work not in self.works:
            return
        try:
            pipe.write(json.dumps({"work": work, **request}) + "\n")
            pipe.flush()
        except BrokenPipeError:
            pass  # its end is read below, with the reason
        answer = self._read()
        if answer is not None:
            self.answers.setdefault(work, []).append(answer)

    def stop(self) -> None:
        """Ends it: it has nothing to save, and unloading a library takes long."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _read(self) -> dict[str, Any] | None:
        pipe = self._process.stdout if self._process else None
        line = pipe.readline() if pipe else ""
        if line:
            return dict(json.loads(line))
        self._errors.seek(0)
        last = [text for text in self._errors.read().splitlines() if text.strip()][-1:]
        self.failure = (last or ["ended without a word"])[0][:200]
        print(f"{self.name} was not run: {self.failure}", file=sys.stderr, flush=True)
        return None

    def rounds(self, work: str) -> list[float]:
        """The median of the milliseconds of each round."""
        return [statistics.median(a["milliseconds"]) for a in self.answers.get(work, [])]

    def median(self, work: str) -> float | None:
        """The median of the rounds, or None if there are none."""
        return statistics.median(self.rounds(work)) if self.rounds(work) else None


def play(
    contenders: Sequence[Contender],
    requests: Sequence[dict[str, Any]],
    rounds: int,
    first: dict[str, Any] | None = None,
) -> None:
    """Starts all, lets each answer `first`, then all requests in turns, and ends them."""
    for contender in contenders:
        contender.start()
        if first is not None:
            contender.turn(**first)
    for number in range(rounds):
        for request in requests:
            for contender in contenders:
                contender.turn(**request)
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    for contender in contenders:
        contender.stop()


def ratio(slow: Contender, fast: Contender, work: str) -> float | None:
    """How many times as long `slow` takes as `fast`: the median over the rounds of both."""
    found = [a / b for a, b in zip(slow.rounds(work), fast.rounds(work))]
    return round(statistics.median(found), 3) if found else None

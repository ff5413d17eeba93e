"""A model by its name: its versions, their states, and which one answers.

A version is loaded beside those that answer, and takes their place only when it is ready; then the
old ones finish what they have accepted, and go. One that cannot be loaded is told of in the status
and never answers; the one before stays. Source of the states: tensorflow/serving,
`get_model_status.proto`.
"""

import gc
import logging
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbert.local_server.engine.limits import Refusal
from kbert.local_server.engine.loaded_version import LoadedVersion, first_line
from kbert.local_server.engine.served_folders import ServedFolder

logger = logging.getLogger(__name__)
# How many versions that have ended the status still tells of.
_MOST_ENDED = 8


@dataclass
class VersionState:
    """What the status says of a version: "LOADING", "AVAILABLE", "UNLOADING" or "END"."""

    state: str
    error: str = ""


class ServedModel:
    """The versions of one model. For one event loop.

    Args:
        folder: Where they lie, and which of them are wanted.
        executor: Threads in which models run.
        loader: A thread in which versions are loaded, one after the other.
        told: Is told the rows of each batch and the seconds that its oldest request waited.
    """

    def __init__(
        self,
        folder: ServedFolder,
        executor: Executor,
        loader: Executor,
        told: Callable[[int, float], None] = lambda rows, seconds: None,
    ) -> None:
        self.folder = folder
        self.states: dict[int, VersionState] = {}
        self._executor = executor
        self._loader = loader
        self._told = told
        self._ready: dict[int, LoadedVersion] = {}
        # Version -> the files that failed, so that it is not tried again until they are others.
        self._failed: dict[int, tuple[Any, ...]] = {}

    @property
    def ready(self) -> dict[int, LoadedVersion]:
        """The versions that answer."""
        return self._ready

    def pick(self, version: int | None = None, label: str | None = None) -> LoadedVersion:
        """The version that a request means.

        Args:
            version: Its number.
            label: Its label; without either, the highest that is ready.

        Raises:
            Refusal: It is not there.
        """
        name = self.folder.name
        if label is not None:
            version = self.folder.labels.get(label)
            if version is None:
                raise Refusal(
                    "FAILED_PRECONDITION", f"Unrecognized servable version label: {label}"
                )
        if version is None:
            if not self._ready:
                raise Refusal("NOT_FOUND", f"Servable not found for request: Latest({name})")
            return self._ready[max(self._ready)]
        if version not in self._ready:
            words = f"Servable not found for request: Specific({name}, {version})"
            raise Refusal("NOT_FOUND", words)
        return self._ready[version]

    async def refresh(self, loop: Any) -> None:
        """Loads what is new and lets go what is no longer wanted.

        Args:
            loop: The running event loop.
        """
        wanted = self.folder.wanted()
        for number in [n for n in wanted if n not in self._ready]:
            await self._load(loop, number, wanted[number])
        keep = {number for number in wanted if number in self._ready}
        if keep:
            for number in [n for n in self._ready if n not in keep]:
                await self._let_go(number)

    async def close(self) -> None:
        """Lets all versions finish, and go."""
        for number in list(self._ready):
            await self._let_go(number)

    async def _load(self, loop: Any, number: int, path: Path) -> None:
        mark = _mark(path)
        if self._failed.get(number) == mark:
            return
        self.states[number] = VersionState("LOADING")
        start = time.monotonic()
        try:
            version = await loop.run_in_executor(self._loader, LoadedVersion, number, path)
        except Exception as error:  # TensorFlow raises any class for a folder that is not right
            told = first_line(error)
            logger.error("%s, version %d: cannot be loaded: %s", self.folder.name, number, told)
            # Clients are told no path of this machine; the log tells it.
            self.states[number] = VersionState("END", told.replace(str(path), path.name))
            self._failed[number] = mark
            return
        version.open(self._executor, self._told)
        self._failed.pop(number, None)
        # One assignment: no request sees a state in between.
        self._ready = {**self._ready, number: version}
        self.states[number] = VersionState("AVAILABLE")
        seconds = time.monotonic() - start
        logger.info("%s, version %d: ready after %.1f s.", self.folder.name, number, seconds)

    async def _let_go(self, number: int) -> None:
        version = self._ready[number]
        self._ready = {n: v for n, v in self._ready.items() if n != number}
        self.states[number] = VersionState("UNLOADING")
        if version.queue is not None:
            await version.queue.idle()
        self.states[number] = VersionState("END")
        for old in sorted(n for n, s in self.states.items() if s.state == "END")[:-_MOST_ENDED]:
            del self.states[old]
        logger.info("%s, version %d: gone.", self.folder.name, number)
        del version
        # The graph's Python objects hold each other, and with them the weights.
        gc.collect()


def _mark(path: Path) -> tuple[Any, ...]:
    """What changes when a folder is replaced, or when a copy of it goes on growing."""
    found = []
    for file in sorted(path.rglob("*")):
        try:
            status = file.stat()
        except OSError:
            continue  # gone meanwhile
        found.append((str(file), status.st_ino, status.st_mtime_ns, status.st_size))
    return tuple(found)


# Source: tensorflow/serving, `get_model_status.proto`.
STATES = {"UNKNOWN": 0, "START": 10, "LOADING": 20, "AVAILABLE": 30, "UNLOADING": 40, "END": 50}


def status_of(
    model: ServedModel, version: int | None = None, label: str | None = None
) -> list[dict[str, Any]]:
    """The states, highest version first, as the REST interface writes them.

    Args:
        model: The model.
        version: This one alone.
        label: That of this label alone.

    Raises:
        Refusal: There is no such version.
    """
    if label is not None:
        version = model.pick(None, label).number
    if version is not None and version not in model.states:
        words = f"Could not find version {version} of model {model.folder.name}"
        raise Refusal("NOT_FOUND", words)
    numbers = [version] if version is not None else sorted(model.states, reverse=True)
    found = []
    for number in numbers:
        one = model.states[number]
        code = "UNKNOWN" if one.error else "OK"
        status = {"error_code": code, "error_message": one.error}
        found.append({"version": str(number), "state": one.state, "status": status})
    return found

"""A served model: its versions, their states, and the choice of the version that answers.

A version is loaded beside those in service, and replaces them only when it is ready; then the old
ones finish their accepted requests, and are unloaded. The status reports one that cannot be loaded,
which never answers; the previous version stays. Source of the states: tensorflow/serving,
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
# Number of ended versions that the status still lists.
_MOST_ENDED = 8


@dataclass
class VersionState:
    """The status of a version: "LOADING", "AVAILABLE", "UNLOADING" or "END"."""

    state: str
    error: str = ""


class ServedModel:
    """The versions of one model. For one event loop.

    Args:
        folder: Their folder, and the policy for those to serve.
        executor: Threads in which models run.
        loader: A thread in which versions are loaded, one after the other.
        told: Called with the rows of each batch, and the seconds that its oldest request waited.
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
        # Version -> the files that failed, so that it is not tried again until they change.
        self._failed: dict[int, tuple[Any, ...]] = {}

    @property
    def ready(self) -> dict[int, LoadedVersion]:
        """Returns the versions in service."""
        return self._ready

    def pick(self, version: int | None = None, label: str | None = None) -> LoadedVersion:
        """Returns the version for a request.

        Args:
            version: Its number.
            label: Its label; without either, the highest that is ready.

        Raises:
            Refusal: There is no such version.
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
        """Loads new versions and unloads those that are no longer wanted.

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
        """Unloads all versions, after they have answered their requests."""
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
        except Exception as error:  # TensorFlow raises any class for an invalid folder
            told = first_line(error)
            logger.error("%s, version %d: cannot be loaded: %s", self.folder.name, number, told)
            # Clients get no path of this machine; it is logged.
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
        # The graph's Python objects are in reference cycles, which keep the weights alive.
        gc.collect()


def _mark(path: Path) -> tuple[Any, ...]:
    """Returns a value that changes when a folder is replaced, or while it is still being copied."""
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
    """Returns the states, highest version first, in the form of the REST API.

    Args:
        model: The model.
        version: The only version to list, or None for all.
        label: The label of the only version to list, or None for all.

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

"""A served model: its versions, their states, and the choice of the version that answers.

A version is loaded beside those in service, and replaces them only when it is ready; then the old
ones finish their accepted requests, and are unloaded. The status reports one that cannot be loaded,
which never answers; the previous version stays. Source of the states: tensorflow/serving,
`get_model_status.proto`.
"""

import gc
import logging
import re
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.local_server.batch_queue import Answer, Arrays, BatchQueue
from kbert.local_server.limits import Refusal
from kbert.serving.bundle.recorded_requests import read_warmup
from kbert.serving.format.batching_file import read_batching
from kbert.serving.format.metadata import read_metadata
from kbert.serving.format.signatures import SERVING_DEFAULT
from kbert.serving.format.version_folders import complete_versions
from kbert.serving.loading.loaded_model import LoadedModel

logger = logging.getLogger(__name__)
# Number of ended versions that the status still lists.
_MOST_ENDED = 8
_SHOWN = 300
# Beginnings of lines of TensorFlow's errors that describe a node, not the error.
_OF_A_NODE = re.compile(r"Detected at node|<stack traces|File \"|\[*\{\{|\d+ root error|\(\d+\)")
# The classes of a graph's errors that are the client's fault.
_CLIENTS = (tf.errors.InvalidArgumentError, tf.errors.OutOfRangeError)


@dataclass(frozen=True)
class ServedFolder:
    """A model's name for clients, the folder of its versions, and the policy for those to serve.

    Args:
        name: The name.
        folder: The folder.
        latest: Number of the highest versions to serve; 0 for all.
        specific: If not empty, the only versions to serve.
        labels: Label -> version.
    """

    name: str
    folder: Path
    latest: int = 1
    specific: tuple[int, ...] = ()
    labels: dict[str, int] = field(default_factory=dict)

    def wanted(self) -> dict[int, Path]:
        """Returns the existing versions that are to be served, lowest first."""
        there = complete_versions(self.folder)
        if self.specific:
            return {number: there[number] for number in there if number in self.specific}
        return {number: there[number] for number in list(there)[-self.latest :]}


class LoadedVersion:
    """A version folder in memory, warmed up and ready to answer.

    Loading reads the SavedModel and runs the requests of its warm-up file; one that fails makes the
    loading fail. Call it in a thread; it takes seconds. It raises any error of TensorFlow for an
    invalid folder.
    """

    def __init__(self, number: int, path: Path) -> None:
        self.number = number
        self.path = path
        self.batching = read_batching(path)
        self.model = LoadedModel(path)
        self.about = _about(path)
        self.queue: BatchQueue | None = None
        for place, request in enumerate(read_warmup(path) or [], 1):
            try:
                # TF Serving runs the main signature where none is named.
                self.model.run(request.signature or SERVING_DEFAULT, request.inputs)
            except Exception as error:  # TensorFlow raises any class
                raise RuntimeError(f"warm-up record {place} fails: {first_line(error)}") from error

    def open(self, executor: Executor, told: Callable[[int, float], None]) -> None:
        """Starts to accept requests, on the running event loop; see `BatchQueue`."""
        self.queue = BatchQueue(self._run, self.batching, executor, told)

    async def answer(self, signature: str, inputs: Arrays) -> Answer:
        """Answers one request; see `BatchQueue.answer`."""
        if self.queue is None:
            raise Refusal("UNAVAILABLE", "The version takes no requests")
        return await self.queue.answer(signature, inputs)

    def _run(self, signature: str, inputs: Arrays) -> dict[str, np.ndarray]:
        try:
            return self.model.run(signature, inputs)
        except _CLIENTS as error:
            raise Refusal("INVALID_ARGUMENT", first_line(error)) from error


def first_line(error: BaseException) -> str:
    """Returns an error's message, without the nodes and files that TensorFlow appends."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("Graph execution error"):
        # After it come the nodes, each with the lines of the program that made it, and at the end
        # the error.
        own = [line for line in lines[1:] if not _OF_A_NODE.match(line)]
        lines = own[-1:] or lines
    return (lines[0] if lines else type(error).__name__)[:_SHOWN]


def _about(path: Path) -> dict[str, Any]:
    """Returns kbert's metadata of the model; {} for a model that kbert did not export."""
    try:
        return read_metadata(path)
    except (OSError, ValueError):
        return {}


@dataclass
class VersionState:
    """The status of a version: "LOADING", "AVAILABLE", "UNLOADING" or "END"."""

    state: str
    error: str = ""


class ServedModel:
    """The versions of one model. For one event loop.

    Models run in the threads of `executor`, and are loaded in that of `loader`; for `told` see
    `BatchQueue`.
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
        """Returns the version of a number or of a label; without either, the highest that is ready.

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
        """Loads new versions and unloads those that are no longer wanted."""
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


def status_of(
    model: ServedModel, version: int | None = None, label: str | None = None
) -> list[dict[str, Any]]:
    """Returns the states, highest version first, in the form of the REST API.

    Either all are listed, or only one, by its number or its label.

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

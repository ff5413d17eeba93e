"""A served model: its versions, their states, and the choice of the version that answers.

A version is loaded beside those in service, and replaces them only when it is ready; then the old
ones finish their accepted requests, and are unloaded. New files under an old number do so too.
The status reports one that cannot be loaded, which never answers; the previous version stays.
Source of the states: tensorflow/serving, `get_model_status.proto`.
"""

import asyncio
import ctypes
import gc
import logging
import time
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager.cancellation import CancellationManager  # has no public name

from kbert.local_server.batch_queue import Answer, Arrays, BatchQueue
from kbert.local_server.concurrent_runs import ConcurrentRuns
from kbert.local_server.limits import Refusal, invalid
from kbert.serving.format.batching_file import read_batching
from kbert.serving.format.recorded_requests import read_warmup
from kbert.serving.format.signatures import SERVING_DEFAULT
from kbert.serving.format.version_folders import complete_versions, read_metadata, versions
from kbert.serving.loading.exported import LoadedModel
from kbert.serving.loading.graph_errors import first_line

logger = logging.getLogger(__name__)
# Number of ended versions that the status still lists.
_MOST_ENDED = 8
_SHOWN = 300
# The classes of a graph's errors that are the client's fault.
_CLIENTS = (tf.errors.InvalidArgumentError, tf.errors.OutOfRangeError)


@dataclass(frozen=True)
class ServedFolder:
    """A model's name for clients, the folder of its versions, and the policy for those to serve.

    Served are the `latest` highest versions, all if it is 0; or only the `specific` ones, if any.
    """

    name: str
    folder: Path
    latest: int = 1
    specific: tuple[int, ...] = ()
    labels: dict[str, int] = field(default_factory=dict)  # label -> version

    def wanted(self) -> dict[int, Path]:
        """Returns the existing versions that are to be served, lowest first."""
        there = complete_versions(self.folder)
        if self.specific:
            return {number: there[number] for number in there if number in self.specific}
        return {number: there[number] for number in list(there)[-self.latest :]}


class LoadedVersion:
    """A version folder in memory, warmed up and ready to answer.

    Loading takes seconds, in a thread, and raises any error of TensorFlow for an invalid folder, or
    a RuntimeError for a request of the warm-up file that fails.
    """

    def __init__(self, number: int, path: Path) -> None:
        self.number = number
        self.path = path
        self.batching = read_batching(path)
        self.model = LoadedModel(path)
        # Metadata of a model that kbert exported.
        self.about: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            self.about = read_metadata(path)
        self.queue: BatchQueue | ConcurrentRuns | None = None  # of the event loop that serves it
        for place, request in enumerate(read_warmup(path, skip_others=True) or [], 1):
            try:
                # TF Serving runs the main signature where none is named.
                self.model.run(request.signature or SERVING_DEFAULT, request.inputs)
            except Exception as error:  # TensorFlow raises any class
                raise RuntimeError(f"warm-up request {place} fails: {first_line(error)}") from error

    async def answer(self, signature: str, inputs: Arrays) -> Answer:
        """Answers one request; see `BatchQueue.answer`."""
        if self.queue is None:
            raise Refusal("UNAVAILABLE", "The version takes no requests")
        return await self.queue.answer(signature, inputs)

    async def idle(self) -> None:
        """Returns when all earlier requests are answered."""
        if self.queue is not None:
            await self.queue.idle()

    def run(
        self, signature: str, inputs: Arrays, stop: CancellationManager | None = None
    ) -> dict[str, np.ndarray]:
        """Calls a signature of the model; `stop` ends the call soon after it is cancelled."""
        try:
            return self.model.run(signature, inputs, stop)
        except _CLIENTS as error:
            raise invalid(first_line(error)[:_SHOWN]) from error
        except tf.errors.UnavailableError as error:  # the queue of the graph is full
            raise Refusal("UNAVAILABLE", first_line(error)[:_SHOWN]) from error


@dataclass
class VersionState:
    """The status of a version: "LOADING", "AVAILABLE", "UNLOADING" or "END"."""

    state: str
    error: str = ""


class ServedModel:
    """The versions of one model. For one event loop.

    Models run in the threads of `executor`, and are loaded in that of `loader`.
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
        # The versions in service.
        self.ready: dict[int, LoadedVersion] = {}
        # Version -> the files that were loaded, or failed: it is tried again when they change.
        self._tried: dict[int, tuple[Any, ...]] = {}

    def pick(self, version: int | None = None, label: str | None = None) -> LoadedVersion:
        """Returns the version of a number or of a label; without either, the highest that is ready.
        """
        name = self.folder.name
        if label is not None:
            version = self.folder.labels.get(label)
            if version is None:
                words = f"Unrecognized servable version label: {label[:200]}"
                raise Refusal("FAILED_PRECONDITION", words)
        if version is None:
            if not self.ready:
                raise Refusal("NOT_FOUND", f"Servable not found for request: Latest({name})")
            return self.ready[max(self.ready)]
        if version not in self.ready:
            words = f"Servable not found for request: Specific({name}, {version})"
            raise Refusal("NOT_FOUND", words)
        return self.ready[version]

    async def refresh(self) -> None:
        """Loads new and replaced versions, and unloads those that are no longer wanted."""
        wanted = self.folder.wanted()
        for number, path in wanted.items():
            mark = _mark(path)
            if self._tried.get(number) != mark:
                self._tried[number] = mark
                await self._load(number, path)
                await self._give_memory_back()  # of what was replaced, or could not be loaded
        for number in self._tried.keys() - self.ready.keys() - versions(self.folder.folder).keys():
            del self._tried[number]  # it failed, and is no longer there
            self.states.pop(number, None)
        keep = {number for number in wanted if number in self.ready}
        if keep:
            for number in [n for n in self.ready if n not in keep]:
                await self._let_go(number)

    async def close(self) -> None:
        """Unloads all versions, after they have answered their requests."""
        for number in list(self.ready):
            await self._let_go(number)

    async def _load(self, number: int, path: Path) -> None:
        replaced = self.ready.get(number)
        if replaced is None:
            self.states[number] = VersionState("LOADING")
        start, loop = time.monotonic(), asyncio.get_running_loop()
        try:
            version = await loop.run_in_executor(self._loader, LoadedVersion, number, path)
        except Exception as error:  # TensorFlow raises any class for an invalid folder
            told = first_line(error)
            logger.error("%s, version %d: cannot be loaded: %s", self.folder.name, number, told)
            if replaced is None:
                # Clients get no path of this machine; it is logged.
                shown = told.replace(str(path), path.name)[:_SHOWN]
                self.states[number] = VersionState("END", shown)
            return
        if version.model.joins_requests:
            alone = version.model.runs_alone
            version.queue = ConcurrentRuns(version.run, self._executor, self._told, alone)
        else:
            version.queue = BatchQueue(version.run, version.batching, self._executor, self._told)
        # One assignment: no request sees a state in between.
        self.ready = {**self.ready, number: version}
        self.states[number] = VersionState("AVAILABLE")
        seconds = time.monotonic() - start
        logger.info("%s, version %d: ready after %.1f s.", self.folder.name, number, seconds)
        if replaced is not None:
            await replaced.idle()

    async def _let_go(self, number: int) -> None:
        version = self.ready[number]
        self.ready = {n: v for n, v in self.ready.items() if n != number}
        self._tried.pop(number, None)
        self.states[number] = VersionState("UNLOADING")
        await version.idle()
        self.states[number] = VersionState("END")
        for old in sorted(n for n, s in self.states.items() if s.state == "END")[:-_MOST_ENDED]:
            del self.states[old]
        logger.info("%s, version %d: gone.", self.folder.name, number)
        del version
        await self._give_memory_back()

    async def _give_memory_back(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._loader, _free_memory)


def _free_memory() -> None:
    """Gives back to the system what is no longer used.

    Weights of graphs that are gone are in reference cycles of Python; and the C library keeps, for
    each thread, what it took to optimize a graph: gigabytes where weights are constants.
    """
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # the GNU C library has it
    if trim is not None:
        trim(0)


def _mark(path: Path) -> tuple[Any, ...]:
    """Returns a value that changes when a folder is replaced, or while it is still being copied."""
    found = []
    for file in sorted(path.rglob("*")):
        with suppress(OSError):  # gone meanwhile
            status = file.stat()
            found.append((str(file), status.st_mtime_ns, status.st_size))
    return tuple(found)


def status_of(
    model: ServedModel, version: int | None = None, label: str | None = None
) -> list[dict[str, Any]]:
    """Returns all states, highest version first, or one, in the form of the REST API."""
    if label is not None:
        version = model.pick(None, label).number
    if version is not None and version not in model.states:
        raise Refusal("NOT_FOUND", f"Could not find version {version} of model {model.folder.name}")
    if not model.states:
        name = model.folder.name
        raise Refusal("NOT_FOUND", f"Could not find any versions of model {name}")
    found = []
    for number in [version] if version is not None else sorted(model.states, reverse=True):
        one = model.states[number]
        status = {"error_code": "UNKNOWN" if one.error else "OK", "error_message": one.error}
        found.append({"version": str(number), "state": one.state, "status": status})
    return found

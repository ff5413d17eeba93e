"""One version of a model, loaded, warmed up and ready to answer."""

import json
import logging
import re
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.local_server.engine.batch_queue import Answer, Arrays, BatchQueue
from kbert.local_server.engine.limits import Refusal
from kbert.serving.bundle.warmup import read_warmup
from kbert.serving.format.batching_file import read_batching
from kbert.serving.format.metadata import read_metadata
from kbert.serving.format.signatures import SERVING_DEFAULT
from kbert.serving.loading.loaded_model import LoadedModel

logger = logging.getLogger(__name__)
_SHOWN = 300
# Beginnings of lines of TensorFlow's errors that describe a node, not the error.
_OF_A_NODE = re.compile(r"Detected at node|<stack traces|File \"|\[*\{\{|\d+ root error|\(\d+\)")
# The classes of a graph's errors that are the client's fault.
_CLIENTS = (tf.errors.InvalidArgumentError, tf.errors.OutOfRangeError)


class LoadedVersion:
    """A version folder in memory.

    Loading reads the SavedModel and runs the requests of its warm-up file; one that fails makes the
    loading fail. Call it in a thread; it takes seconds.

    Args:
        number: The version.
        path: Its folder.

    Raises:
        Exception: Any error of TensorFlow for an invalid folder.
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
        """Starts to accept requests, on the running event loop.

        Args:
            executor: Threads for the model.
            told: Called with the rows of each batch, and the seconds that its oldest request
                waited.
        """
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
    """Returns an error's message, without the nodes and files that TensorFlow appends.

    Args:
        error: The error.
    """
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
    except (OSError, ValueError, json.JSONDecodeError):
        return {}

"""All models of a server: discovery, loading, polling for new versions, and requests."""

import asyncio
import logging
import os
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from kbert.local_server.engine.batch_queue import Answer, Arrays
from kbert.local_server.engine.limits import Refusal
from kbert.local_server.engine.loaded_version import LoadedVersion
from kbert.local_server.engine.metrics import Metrics
from kbert.local_server.engine.served_folders import served_folders
from kbert.local_server.engine.served_model import ServedModel
from kbert.serving.format.signatures import Signature

logger = logging.getLogger(__name__)
_THREADS = 4


class ModelStore:
    """The models of one path. For one event loop.

    Args:
        base: Path of the models, see `kbert.local_server.engine.served_folders`.
        metrics: Counts the batches.
    """

    def __init__(self, base: str | os.PathLike[str], metrics: Metrics) -> None:
        self.base = base
        self.metrics = metrics
        self._models: dict[str, ServedModel] = {}
        # Models run in parallel; of one model, one batch at a time.
        self._executor = ThreadPoolExecutor(_THREADS, "kbert-model")
        self._loader = ThreadPoolExecutor(1, "kbert-loader")

    @property
    def models(self) -> Mapping[str, ServedModel]:
        """Returns name -> model."""
        return self._models

    def model(self, name: str) -> ServedModel:
        """Returns a model by its name.

        Raises:
            Refusal: There is no such model.
        """
        if name not in self._models:
            raise Refusal("NOT_FOUND", f"Servable not found for request: Latest({name[:200]})")
        return self._models[name]

    async def refresh(self) -> None:
        """Looks for new models and versions once, and loads them.

        Raises:
            FileNotFoundError, ValueError: The path holds no model.
        """
        loop = asyncio.get_running_loop()
        found = {one.name: one for one in served_folders(self.base)}
        for name, folder in found.items():
            if name in self._models:
                self._models[name].folder = replace(folder)
            else:
                told = self.metrics.batches_of(name)
                model = ServedModel(folder, self._executor, self._loader, told)
                self._models[name] = model
            await self._models[name].refresh(loop)
        for name in [name for name in self._models if name not in found]:
            if not self._has_folder(name):
                await self._models.pop(name).close()

    def _has_folder(self, name: str) -> bool:
        """Returns whether a model's folder still exists, without versions for now."""
        return Path(self.base).is_dir() and self._models[name].folder.folder.is_dir()

    async def watch(self, seconds: float) -> None:
        """Refreshes periodically, until it is cancelled.

        Args:
            seconds: The pause between two refreshes.
        """
        told = ""
        while True:
            await asyncio.sleep(seconds)
            try:
                await self.refresh()
                told = ""
            except Exception as error:
                # Such as a folder or a file that is being written: loaded models stay in service
                # until the next refresh. The same message is logged once.
                if str(error) != told:
                    told = str(error)
                    logger.warning("The models stay as they are: %s", told)

    async def answer(
        self, version: LoadedVersion, signature: str, inputs: Arrays, deadline: float
    ) -> Answer:
        """Answers a request with a version.

        Args:
            version: Version from `ServedModel.pick`.
            signature: Name of a signature of the version.
            inputs: Its inputs.
            deadline: Time on the clock of `time.monotonic`.

        Raises:
            Refusal: There is no answer, or not in time.
        """
        try:
            left = deadline - time.monotonic()
            return await asyncio.wait_for(version.answer(signature, inputs), max(0.0, left))
        except TimeoutError as error:
            raise Refusal("DEADLINE_EXCEEDED", "There was no answer in time") from error

    async def close(self) -> None:
        """Closes all models, after they have answered their requests."""
        for model in self._models.values():
            await model.close()
        self._executor.shutdown(wait=True)
        self._loader.shutdown(wait=True, cancel_futures=True)


def signature_of(version: LoadedVersion, name: str) -> Signature:
    """Returns a signature of a version.

    Raises:
        Refusal: It has no signature of this name.
    """
    if name not in version.model.signatures:
        words = f'Serving signature name: "{name[:200]}" not found in signature def'
        raise Refusal("INVALID_ARGUMENT", words)
    return version.model.signatures[name]


def check_inputs(signature: Signature, inputs: Arrays) -> None:
    """Checks that inputs are those of a signature, with the same number of rows.

    Raises:
        Refusal: They are not.
    """
    if set(inputs) != set(signature.inputs):
        words = f"inputs must be {sorted(signature.inputs)}, and are {sorted(inputs)}"
        raise Refusal("INVALID_ARGUMENT", words[:500])
    for name, tensor in signature.inputs.items():
        if tensor.shape is None:
            continue
        found = inputs[name].shape
        fits = len(found) == len(tensor.shape) and all(
            wanted is None or wanted == size for wanted, size in zip(tensor.shape, found)
        )
        if not fits:
            shown = [-1 if size is None else size for size in tensor.shape]
            words = f"input {name!r} must have the shape {shown}, and has {list(found)}"
            raise Refusal("INVALID_ARGUMENT", words)
    sizes = {name: len(batch) for name, batch in inputs.items() if batch.ndim}
    if len(set(sizes.values())) > 1:
        raise Refusal("INVALID_ARGUMENT", f"inputs must have as many rows each, and have {sizes}")

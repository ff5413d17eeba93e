"""All models of a server: discovery, loading, polling for new versions, and requests.

A path is one model, a folder of models, or a `model.config`. Source of the file's format:
tensorflow/serving, `model_server_config.proto`; for the names of versions see
`kbert.serving.format.version_folders`.
"""

import asyncio
import logging
import os
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from google.protobuf import text_format

from kbert.extras import install_extra
from kbert.local_server.batch_queue import Answer, Arrays
from kbert.local_server.limits import Metrics, Refusal, invalid
from kbert.local_server.served_model import LoadedVersion, ServedFolder, ServedModel
from kbert.serving.format.signatures import Signature
from kbert.serving.format.version_folders import (
    SAVED_MODEL_FILE,
    complete_versions,
    is_version,
)

logger = logging.getLogger(__name__)


def served_folders(base: str | os.PathLike[str]) -> list[ServedFolder]:
    """Finds the current models of a path, sorted by name.

    Raises FileNotFoundError if there is no model, and ValueError for a damaged configuration.
    """
    path = Path(base).resolve()
    if path.is_file():
        return _configured(path)
    if (path / SAVED_MODEL_FILE).is_file() and is_version(path.name):
        return [ServedFolder(path.parent.name, path.parent, specific=(int(path.name),))]
    # Other folders, such as logs, may have numbers as names.
    if complete_versions(path):
        return [ServedFolder(path.name, path)]
    children = sorted(path.iterdir()) if path.is_dir() else []
    found = [ServedFolder(child.name, child) for child in children if complete_versions(child)]
    if not found:
        without = "a folder without one (`kbert export` makes one)"
        what = without if path.is_dir() else "no such path"
        raise FileNotFoundError(
            "`base` must be the folder of a model with its versions, BASE/<model> with "
            f"BASE/<model>/<version>/{SAVED_MODEL_FILE}, a folder of models, or a model.config. "
            f"Received: base={str(base)!r}, {what}"
        )
    return found


def _configured(file: Path) -> list[ServedFolder]:
    try:
        from tensorflow_serving.config import model_server_config_pb2
    except ImportError as error:
        raise ImportError(
            "To read a model.config, the package tensorflow-serving-api is needed: "
            f"{install_extra('serving')}"
        ) from error
    config = model_server_config_pb2.ModelServerConfig()
    try:
        text_format.Parse(file.read_text(encoding="utf-8"), config)
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise ValueError(f"`{file}` must hold a ModelServerConfig. Received: {error}") from error
    found = [_entry(file, one) for one in config.model_config_list.config]
    names = [one.name for one in found]
    if not names or len(set(names)) != len(names) or not all(names):
        raise ValueError(
            f"`{file}` must list models, each with a name of its own. Received: {names}"
        )
    return sorted(found, key=lambda one: one.name)


def _entry(file: Path, one: Any) -> ServedFolder:
    """Returns a model of the list; a container's path becomes its namesake beside the file."""
    labels = dict(one.version_labels)
    folder = Path(one.base_path)
    if not folder.is_dir():
        folder = file.parent / folder.name
    policy = one.model_version_policy
    chosen = policy.WhichOneof("policy_choice")
    if chosen == "specific":
        numbers = tuple(policy.specific.versions)
        return ServedFolder(one.name, folder, specific=numbers, labels=labels)
    latest = max(1, policy.latest.num_versions) if chosen != "all" else 0
    return ServedFolder(one.name, folder, latest, labels=labels)


class ModelStore:
    """The models of a path, see `served_folders`. For one event loop.

    `threads` run models: as many as requests at a time, since those wait in them to share a batch.
    """

    def __init__(
        self, base: str | os.PathLike[str], metrics: Metrics, threads: int = 128
    ) -> None:
        self.base = base
        self.metrics = metrics
        self.models: dict[str, ServedModel] = {}
        self._executor = ThreadPoolExecutor(threads, "kbert-model")
        self._loader = ThreadPoolExecutor(1, "kbert-loader")

    def model(self, name: str) -> ServedModel:
        """Returns a model by its name, or refuses the request."""
        if name not in self.models:
            raise Refusal("NOT_FOUND", f"Servable not found for request: Latest({name[:200]})")
        return self.models[name]

    async def refresh(self) -> None:
        """Looks for new models and versions once, and loads them; errors as `served_folders`."""
        found = {one.name: one for one in served_folders(self.base)}
        for name, folder in found.items():
            known = name in self.models
            if known:
                self.models[name].folder = folder
            else:
                told = self.metrics.batches_of(name)
                self.models[name] = ServedModel(folder, self._executor, self._loader, told)
            await self.models[name].refresh()
            if not known and not self.models[name].states:
                logger.warning("%s: there is no version in %s.", name, folder.folder)
        for name in [name for name in self.models if name not in found]:
            # A folder that still exists is without versions for now.
            if not (Path(self.base).is_dir() and self.models[name].folder.folder.is_dir()):
                await self.models.pop(name).close()

    async def watch(self, seconds: float) -> None:
        """Refreshes until it is cancelled, with a pause of so many seconds between."""
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
        """Answers a request to a version, or refuses it after `deadline`, on the monotonic clock.
        """
        try:
            left = deadline - time.monotonic()
            return await asyncio.wait_for(version.answer(signature, inputs), max(0.0, left))
        except TimeoutError as error:
            raise Refusal("DEADLINE_EXCEEDED", "There was no answer in time") from error

    async def close(self) -> None:
        """Closes all models, after they have answered their requests."""
        for model in self.models.values():
            await model.close()
        self._executor.shutdown(wait=True)
        self._loader.shutdown(wait=True, cancel_futures=True)


def signature_of(version: LoadedVersion, name: str) -> Signature:
    """Returns a signature of a version, or refuses the request."""
    if name not in version.model.signatures:
        raise invalid(f'Serving signature name: "{name[:200]}" not found in signature def')
    return version.model.signatures[name]


def check_inputs(signature: Signature, inputs: Arrays) -> None:
    """Refuses inputs that are not those of a signature, with the same number of rows."""
    check_names(signature, inputs)
    for name, tensor in signature.inputs.items():
        if tensor.shape is None:
            continue
        found = inputs[name].shape
        fits = len(found) == len(tensor.shape) and all(
            wanted is None or wanted == size for wanted, size in zip(tensor.shape, found)
        )
        if not fits:
            shown = [-1 if size is None else size for size in tensor.shape]
            raise invalid(f"input {name!r} must have the shape {shown}, and has {list(found)}")
    sizes = {name: len(batch) for name, batch in inputs.items() if batch.ndim}
    if len(set(sizes.values())) > 1:
        raise invalid(f"inputs must have as many rows each, and have {sizes}")


def check_names(signature: Signature, names: Collection[str]) -> None:
    """Refuses inputs that have not the names of a signature's."""
    if set(names) != set(signature.inputs):
        raise invalid(f"inputs must be {sorted(signature.inputs)}, and are {sorted(names)}"[:500])

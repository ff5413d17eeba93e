"""The models of a path: one model, a folder of models, or a `model.config`.

Source of the file's format: tensorflow/serving, `model_server_config.proto`; for the names of
versions see `kbert.serving.format.version_folders`.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from google.protobuf import text_format

from kbert.serving.format.version_folders import SAVED_MODEL_FILE, is_version, versions

_EXTRA = (
    "To read a model.config, the package tensorflow-serving-api is needed: "
    'pip install ".[serving]" in the checkout of kbert'
)


@dataclass(frozen=True)
class ServedFolder:
    """A model, and the policy for its served versions.

    Args:
        name: The model's name for clients.
        folder: The folder of its versions.
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
        there = {
            number: path
            for number, path in versions(self.folder).items()
            if (path / SAVED_MODEL_FILE).is_file()
        }
        if self.specific:
            return {number: there[number] for number in there if number in self.specific}
        return {number: there[number] for number in list(there)[-self.latest :]}


def served_folders(base: str | os.PathLike[str]) -> list[ServedFolder]:
    """Finds the current models of a path.

    Args:
        base: The folder of one model (with a folder for each version), a folder of such folders,
            one version, or a `model.config`.

    Returns:
        The models, sorted by name.

    Raises:
        FileNotFoundError: There is no model.
        ValueError: The configuration cannot be read.
        ImportError: It cannot be read without the extra "serving".
    """
    path = Path(base).resolve()
    if path.is_file():
        return _configured(path)
    if (path / SAVED_MODEL_FILE).is_file() and is_version(path.name):
        return [ServedFolder(path.parent.name, path.parent, specific=(int(path.name),))]
    if _is_model(path):
        return [ServedFolder(path.name, path)]
    children = sorted(path.iterdir()) if path.is_dir() else []
    found = [ServedFolder(child.name, child) for child in children if _is_model(child)]
    if not found:
        without = "a folder without one (`kbert export` makes one)"
        what = without if path.is_dir() else "no such path"
        raise FileNotFoundError(
            "`base` must be the folder of a model with its versions, BASE/<model> with "
            f"BASE/<model>/<version>/{SAVED_MODEL_FILE}, a folder of models, or a model.config. "
            f"Received: base={str(base)!r}, {what}"
        )
    return found


def _is_model(folder: Path) -> bool:
    """Returns whether a folder has a version; others, such as logs, may have numbers as names."""
    return any((found / SAVED_MODEL_FILE).is_file() for found in versions(folder).values())


def _configured(file: Path) -> list[ServedFolder]:
    try:
        from tensorflow_serving.config import model_server_config_pb2
    except ImportError as error:
        raise ImportError(_EXTRA) from error
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

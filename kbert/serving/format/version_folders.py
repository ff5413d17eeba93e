"""Folders of exports, BASE/<model>/<version>/, in the layout of TF Serving.

TF Serving takes each folder of a model whose name is a 64-bit integer for a version, and serves the
highest. It ignores other names. Source: tensorflow/serving,
`sources/storage_path/file_system_storage_path_source.cc`.
"""

import os
import re
from pathlib import Path

from kbert.storage.atomic_directory import remove_atomically

SAVED_MODEL_FILE = "saved_model.pb"
# Not digits alone: that is the name of a version.
_MODEL_NAME = re.compile(r"(?!\d+$)[A-Za-z0-9_][A-Za-z0-9_.-]*")
_VERSION = re.compile(r"[0-9]+")
_LARGEST_VERSION = 2**63 - 1


def versions(folder: str | os.PathLike[str]) -> dict[int, Path]:
    """Returns version -> folder, complete or not, of BASE/<model>; lowest first."""
    path = Path(folder)
    children = path.iterdir() if path.is_dir() and os.access(path, os.R_OK | os.X_OK) else ()
    found = {int(child.name): child for child in children if is_version(child.name)}
    return dict(sorted(found.items()))


def complete_versions(folder: str | os.PathLike[str]) -> dict[int, Path]:
    """Returns the versions of BASE/<model> that hold a saved_model.pb, lowest first."""
    return {n: path for n, path in versions(folder).items() if (path / SAVED_MODEL_FILE).is_file()}


def is_version(name: str) -> bool:
    """Returns whether a server takes a folder of this name for a version."""
    return bool(_VERSION.fullmatch(name)) and int(name) <= _LARGEST_VERSION


def model_name(folder: str | os.PathLike[str]) -> str:
    """Returns the default name on a server of a model in a folder, or of a published name.

    It is the last part without `.keras`, with `_` for characters that `new_version` does not allow.
    """
    last = Path(os.path.abspath(folder)).name.removesuffix(".keras")
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", last)
    return name if _MODEL_NAME.fullmatch(name) else f"model_{name.lstrip('.-')}"


def new_version(
    base: str | os.PathLike[str], name: str, version: int | None = None
) -> tuple[Path, int]:
    """Returns the folder of a new version.

    Args:
        base: The folder of all models.
        name: The model's name in URLs: letters, digits, `_`, `-` and `.`.
        version: The version's number; None for one more than the highest, or 1.

    Returns:
        BASE/<name>/<version>, which does not exist, and the version.

    Raises:
        ValueError: The name or the version is invalid, or `base` is a model's own folder.
        NotADirectoryError: `base` is a file.
        FileExistsError: The version exists already.
    """
    if not isinstance(name, str) or not _MODEL_NAME.fullmatch(name):
        raise ValueError(
            "`name` must be made of letters, digits, `_`, `-` and `.`, not of digits alone, and "
            f"not begin with `-` or `.`. Received: name={name!r}"
        )
    _check_base(Path(base))
    folder = Path(base) / name
    present = versions(folder)
    if version is None:
        version = max(present, default=0) + 1
    is_number = isinstance(version, int) and not isinstance(version, bool)
    if not is_number or not 0 < version <= _LARGEST_VERSION:
        raise ValueError(
            "`version` must be an integer of at least 1, below 2**63. "
            f"Received: version={version!r}"
        )
    if version in present:
        raise FileExistsError(
            "`version` must not be there yet: a server may be reading it. "
            f"Received: version={version}, which is {present[version]}. "
            f"The next free one is {max(present) + 1}"
        )
    return folder / str(version), version


def _check_base(base: Path) -> None:
    """Checks that a folder may hold models: it is not a model, a version of one or a run."""
    if base.exists() and not base.is_dir():
        raise NotADirectoryError(f"`base` must be a folder. Received: {base}, a file")
    if (base / SAVED_MODEL_FILE).is_file():
        what, above = "a version of an export", base.parent.parent
    elif complete_versions(base):
        what, above = "a model with its versions", base.parent
    elif (base / "metrics.json").is_file() and (base / "config.yaml").is_file():
        what, above = "a run", Path("exports")
    else:
        return
    raise ValueError(
        f"`base` must be a folder of models, such as {above}. Received: {base}, which is {what}"
    )


def remove_old_versions(
    folder: str | os.PathLike[str], keep: int | None, spare: int | None = None
) -> list[int]:
    """Removes the lowest versions of BASE/<model>, each atomically, and returns them.

    The highest `keep` stay, or all if that is None, and `spare`, however low it is.
    """
    present = versions(folder)
    old = list(present)[: 0 if keep is None else max(0, len(present) - keep)]
    old = [number for number in old if number != spare]
    for number in old:
        remove_atomically(present[number])
    return old


def find_export(path: str | os.PathLike[str]) -> Path:
    """Finds the version folder of an export, which holds saved_model.pb.

    Args:
        path: BASE/<model>/<version>, or BASE/<model> for its highest version.

    Raises:
        FileNotFoundError: There is none; the message lists what exists.
    """
    folder = Path(path)
    if (folder / SAVED_MODEL_FILE).is_file():
        return folder
    complete = complete_versions(folder)
    if complete:
        return complete[max(complete)]
    if not folder.is_dir():
        found = "no such folder"
    else:
        models = [model.name for model in exports_in(folder)]
        found = f"a folder of the models {models}: name one" if models else "a folder without one"
    raise FileNotFoundError(
        "`path` must be an export, BASE/<model> or BASE/<model>/<version> with a "
        f"{SAVED_MODEL_FILE}. Received: path={str(path)!r}, {found}"
    )


def exports_in(base: str | os.PathLike[str]) -> list[Path]:
    """Returns BASE/<model> for each model with versions, complete or not, by name."""
    folder = Path(base)
    children = folder.iterdir() if folder.is_dir() and os.access(folder, os.R_OK | os.X_OK) else ()
    return sorted(child for child in children if versions(child))

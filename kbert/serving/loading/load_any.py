"""`kbert.load`, for saved models and exports."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kbert.serving.format.metadata import METADATA_FILE
from kbert.serving.format.version_folders import exports_in, find_export
from kbert.serving.loading.exported import Exported, load_export
from kbert.tasks.load import load as load_model


class ExportedTask:
    """One of several tasks of an export.

    Args:
        export: The export.
        name: The task, which is the name of its signature.
    """

    def __init__(self, export: Exported, name: str) -> None:
        self.export = export
        self.name = name

    @property
    def labels(self) -> list[str] | None:
        """Returns the class names in the order of the scores; None for a model without classes."""
        return self.export.metadata["tasks"][self.name].get("labels")

    def predict(self, *texts: Sequence[Any]) -> dict[str, np.ndarray]:
        """Runs the task on raw texts.

        Args:
            *texts: A sequence of n str or bytes for each input, such as `text_a` and `text_b`.

        Returns:
            Name of each output -> n answers, (n, ...).
        """
        return self.export.predict(*texts, signature=self.name)

    def answers(self, *texts: Sequence[Any]) -> list[dict[str, Any]]:
        """Returns readable answers for raw texts.

        Args:
            *texts: A sequence of n str or bytes for each input, such as `text_a` and `text_b`.

        Returns:
            A dict a row, of plain Python values.
        """
        return self.export.answers(*texts, signature=self.name)


def load(directory: str | os.PathLike[str], **kwargs: Any) -> Any:
    """Loads a saved model, or an export.

    Args:
        directory: The folder of a saved model, of a finished run, or of a Hugging Face or Marian
            model with a head; a `.keras` file; the name of a model that comes with kbert, such as
            "minilm-squad"; or an export of kbert, BASE/<model> or BASE/<model>/<version>.
        **kwargs: Arguments of the model's class, such as `dtype`; with a file, of
            `keras.models.load_model`; none for an export, which is fixed.

    Returns:
        A model on raw texts, such as `kbert.Classifier`; of an export a
        `kbert.serving.loading.exported.Exported`, and of one with several tasks the name of each ->
        its `ExportedTask`.

    Raises:
        ValueError: It holds only an encoder, or a task unknown to this version, an export was
            given arguments, or `directory` is a folder of several exports.
        FileNotFoundError: There is no such folder, file or name.
    """
    path = _export(directory)
    if path is None:
        return load_model(directory, **kwargs)
    if kwargs:
        raise ValueError(
            "`kbert.load` must have no further arguments for an export, which is as it was "
            f"written. Received: {', '.join(kwargs)} for {directory}"
        )
    found = load_export(path)
    return {name: ExportedTask(found, name) for name in found.tasks} or found


def _export(directory: str | os.PathLike[str]) -> Path | None:
    """Returns the version folder of an export of kbert; None if a path or name is not one."""
    try:
        path = find_export(directory)
    except FileNotFoundError:
        exports = exports_in(directory)
        if exports:
            raise ValueError(
                f"`directory` must be one export. Received: {directory}, which holds exports: "
                f"{', '.join(map(os.fspath, exports))}"
            ) from None
        return None
    return path if (path / METADATA_FILE).is_file() else None

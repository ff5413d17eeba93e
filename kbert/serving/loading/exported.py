"""Exports loaded back into Python: the same graph that TF Serving runs."""

import functools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kbert.pipelines.base.text_inputs import checked_texts, read_columns
from kbert.pipelines.inference.size_batches import answers_of_rows
from kbert.serving.format.metadata import METADATA_FILE, read_metadata
from kbert.serving.format.signatures import SERVING_DEFAULT
from kbert.serving.format.version_folders import exports_in, find_export
from kbert.serving.loading.loaded_model import LoadedModel
from kbert.serving.loading.row_batches import in_batches, size_of
from kbert.tasks.load import load as load_model
from kbert.tasks.registry import json_answer

_BATCH_ROWS = 32


class Exported:
    """A loaded export, made by `load_export`.

    Args:
        path: The version folder.

    Raises:
        FileNotFoundError: The folder is not an export of kbert.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.metadata = read_metadata(path)
        self._model = LoadedModel(path)
        self.signatures = self._model.signatures

    @property
    def labels(self) -> list[str] | None:
        """Returns the class names in the order of the scores; None for a model without classes."""
        return self.metadata.get("labels")

    def input_names(self, signature: str = SERVING_DEFAULT) -> list[str]:
        """Returns the names of a signature's inputs, in the order of the arguments.

        Raises:
            ValueError: There is no such signature.
        """
        signatures = self.metadata["signatures"]
        if signature not in signatures:
            raise ValueError(
                f"`signature` must be one of {sorted(signatures)}. "
                f"Received: signature={signature!r}"
            )
        return [tensor["name"] for tensor in signatures[signature]["inputs"]]

    def run(
        self, inputs: Mapping[str, Any], signature: str = SERVING_DEFAULT
    ) -> dict[str, np.ndarray]:
        """Calls a signature once.

        Args:
            inputs: Name of each input -> its batch, an array or nested list (B, ...).
            signature: The name of the signature.

        Returns:
            Name of each output -> its batch, (B, ...). Strings are bytes.

        Raises:
            ValueError: The signature is unknown, it has other inputs, or one has another rank.
        """
        names = self.input_names(signature)
        if set(inputs) != set(names):
            raise ValueError(
                f"`inputs` of the signature {signature!r} must be {names}. "
                f"Received: inputs={sorted(inputs)}"
            )
        return self._model.run(signature, inputs)

    @property
    def tasks(self) -> list[str]:
        """Returns the signatures of the tasks that share the export; none if it has one task."""
        return list(self.metadata.get("tasks") or {})

    def predict(
        self,
        *texts: Sequence[Any],
        batch_size: int = _BATCH_ROWS,
        signature: str = SERVING_DEFAULT,
    ) -> dict[str, np.ndarray]:
        """Runs a signature on raw texts.

        Batches are length-bucketed; the answers are in the order of the texts.

        Args:
            *texts: A sequence of n str or bytes for each input, such as `text_a` and `text_b`; or
                one dict or table with these columns.
            batch_size: Rows a batch, fewer of long texts; see
                `kbert.pipelines.inference.size_batches`.
            signature: The name of the signature, which of several tasks is the task's name.

        Returns:
            Name of each output -> n answers, (n, ...).

        Raises:
            ValueError: The number of sequences is not that of the inputs, they differ in length, or
                there is no such signature.
            TypeError: An entry is not a text.
        """
        run = functools.partial(self.run, signature=signature)
        return in_batches(run, self._columns(texts, signature), batch_size)

    def answers(
        self,
        *texts: Sequence[Any],
        batch_size: int = _BATCH_ROWS,
        signature: str = SERVING_DEFAULT,
    ) -> list[dict[str, Any]]:
        """Returns readable answers for raw texts.

        Args:
            *texts: A sequence of n str or bytes for each input, such as `text_a` and `text_b`; or
                one dict or table with these columns.
            batch_size: Rows a batch, fewer of long texts.
            signature: The name of the signature, which of several tasks is the task's name.

        Returns:
            A dict a row, of plain Python values; see `kbert.tasks.registry.json_answer`.
        """
        columns = self._columns(texts, signature)

        def run(rows: np.ndarray) -> dict[str, np.ndarray]:
            chosen = {name: [column[i] for i in rows] for name, column in columns.items()}
            found = self.run(chosen, signature)
            return {key: found[key] for key in sorted(found)}

        # Row by row: a batch's padding to its longest row need not be extended to that of all.
        sizes = [sum(map(size_of, row)) for row in zip(*columns.values(), strict=True)]
        return [json_answer(row) for row in answers_of_rows(run, np.array(sizes), batch_size)]

    def _columns(self, texts: Sequence[Any], signature: str) -> dict[str, list[Any]]:
        """Returns name of each input -> its texts."""
        names = self.input_names(signature)
        if len(texts) == 1:
            table = read_columns(texts[0], tuple(names))
            if isinstance(table, dict):
                if set(table) != set(names):
                    raise ValueError(
                        f"`texts` must be a dict of the columns {names}. Received: {list(table)}"
                    )
                texts = [table[name] for name in names]
        single = next((text for text in texts if isinstance(text, str | bytes)), None)
        if single is not None:
            raise ValueError(
                f"`texts` must be lists of texts, one for each of {names}. Received: the single "
                f"text {single!r:.80}"
            )
        columns = [list(column) for column in texts]
        if len(columns) != len(names) or len({len(column) for column in columns}) != 1:
            raise ValueError(
                f"`texts` must be {len(names)} list(s) of the same length, for {names}. Received: "
                f"{len(columns)} of {[len(column) for column in columns]} texts"
            )
        kinds = {given["name"]: given for given in self.metadata["signatures"][signature]["inputs"]}
        for name, column in zip(names, columns, strict=True):
            if len(kinds[name]["shape"]) == 1 and kinds[name]["dtype"] == "string":
                checked_texts(name, column)
        return dict(zip(names, columns))

    def __repr__(self) -> str:
        """Returns the model's class, name and version."""
        what = f"{self.metadata.get('class')} {self.metadata.get('name')!r}"
        return f"<Exported {what} version {self.metadata.get('version')}>"


def load_export(path: str | os.PathLike[str]) -> Exported:
    """Loads an export into Python.

    Args:
        path: BASE/<model>/<version>, or BASE/<model> for its highest version.

    Returns:
        The export: `run`, `predict`, `answers`, `labels`, `metadata`.

    Raises:
        FileNotFoundError: There is none; the message lists what exists.
    """
    return Exported(find_export(path))


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

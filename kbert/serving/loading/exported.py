"""SavedModels loaded back into Python: the same graph that TF Serving runs."""

import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the ops that the graphs use)
from tensorflow.python.eager.cancellation import CancellationManager  # has no public name

from kbert.data.batches.plans import answers_of_rows
from kbert.data.remote_files import fetched, is_remote
from kbert.pipelines.text_inputs import checked_texts, read_columns
from kbert.serving.format.joined_requests import joined_rows, runs_alone
from kbert.serving.format.signatures import SERVING_DEFAULT, read_meta_graph, signatures_of
from kbert.serving.format.version_folders import (
    METADATA_FILE,
    SAVED_MODEL_FILE,
    exports_in,
    find_export,
    is_version,
    read_metadata,
)
from kbert.serving.loading.graph_errors import first_line
from kbert.serving.loading.registered_functions import OtherSavedModel, RegisteredFunctions
from kbert.serving.loading.row_batches import check_batch_size, in_batches, size_of
from kbert.tasks.load import load as load_model
from kbert.tasks.registry import json_answer

_Called = Callable[..., Mapping[str, tf.Tensor]]


class LoadedModel:
    """The graph for serving and the weights of a version folder; thread-safe.

    `rebuilt`: whether TensorFlow makes the functions again in Python, as it does for those who have
    no kbert, which takes longer.
    """

    def __init__(self, path: str | os.PathLike[str], rebuilt: bool = False) -> None:
        self.path = Path(path)
        self.meta_graph = read_meta_graph(path)
        self._joined_rows = joined_rows(self.meta_graph.graph_def)
        self.signatures = signatures_of(self.meta_graph)
        try:
            self._called = self._rebuilt() if rebuilt else self._registered()
        except (tf.errors.OpError, OSError, IndexError, ValueError) as error:
            raise ValueError(
                f"`{path}` must be a SavedModel that TensorFlow can load, with all of its weights. "
                f"Received: {first_line(error)}"
            ) from error
        # Clients only see the signatures; the nodes would stay in memory for nothing.
        self.meta_graph.ClearField("graph_def")

    def _registered(self) -> _Called:
        try:
            return RegisteredFunctions(self.path, self.meta_graph).run
        except OtherSavedModel:
            return self._rebuilt()

    def _rebuilt(self) -> _Called:
        # The object keeps the weights alive; the signatures alone do not.
        loaded: Any = tf.saved_model.load(str(self.path))
        return lambda signature, tensors, cancellation: loaded.signatures[signature](**tensors)

    @property
    def joins_requests(self) -> bool:
        """Returns whether the graph itself lets concurrent requests share a batch."""
        return self._joined_rows > 0

    def runs_alone(self, signature: str, inputs: Mapping[str, np.ndarray]) -> bool:
        """Returns whether a request surely shares no batch in the graph."""
        shapes = {name: one.shape for name, one in self.signatures[signature].inputs.items()}
        return runs_alone(shapes, inputs, self._joined_rows)

    def run(
        self,
        signature: str,
        inputs: Mapping[str, Any],
        cancellation: CancellationManager | None = None,
    ) -> dict[str, np.ndarray]:
        """Calls a signature once; inputs and outputs are batches (B, ...), strings are bytes.

        Cancelled, it raises `tf.errors.CancelledError`, and so may do all calls that share its
        batch: only one that `runs_alone` may be. Rebuilt functions go on to their ends.
        """
        with tf.device("CPU:0"):  # whose memory is the same for all runtimes
            tensors = {
                name: tf.constant(tensor.batch(name, inputs[name]), tensor.dtype)
                for name, tensor in self.signatures[signature].inputs.items()
            }
        answers = self._called(signature, tensors, cancellation)
        return {name: answer.numpy() for name, answer in answers.items()}


_BATCH_ROWS = 32


class Exported:
    """A loaded export of kbert, made by `load_export`.

    `path` is its version folder, `metadata` the contents of kbert.json. `labels` are the class
    names in the order of the scores, None for a model without classes; `tasks` the signatures of
    the tasks that share the export, none if it has one task.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.metadata = read_metadata(path)
        self._model = LoadedModel(path)
        self.signatures = self._model.signatures
        self.labels: list[str] | None = self.metadata.get("labels")
        self.tasks = list(self.metadata.get("tasks") or {})

    def input_names(self, signature: str = SERVING_DEFAULT) -> list[str]:
        """Returns the names of a signature's inputs, in the order of the arguments."""
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
        """Calls a signature once; inputs and outputs are batches (B, ...), strings are bytes.

        Raises ValueError for an unknown signature, other inputs or another rank.
        """
        names = self.input_names(signature)
        if set(inputs) != set(names):
            raise ValueError(
                f"`inputs` of the signature {signature!r} must be {names}. "
                f"Received: inputs={sorted(inputs)}"
            )
        return self._model.run(signature, inputs)

    def predict(
        self, *texts: Sequence[Any], batch_size: int = _BATCH_ROWS, signature: str = SERVING_DEFAULT
    ) -> dict[str, np.ndarray]:
        """Runs a signature on raw texts, and returns name of each output -> n answers, (n, ...).

        `texts` are a sequence of n str or bytes for each input, such as `text_a` and `text_b`; or
        one dict or table with these columns. Batches have `batch_size` rows of similar length,
        fewer of long texts; the answers are in the order of the texts. Of several tasks,
        `signature` is the task's name. Raises ValueError if the texts are not as many as the
        inputs, or differ in length, and TypeError for an entry that is no text.
        """
        run = functools.partial(self.run, signature=signature)
        return in_batches(run, self._columns(texts, signature), batch_size)

    def answers(
        self, *texts: Sequence[Any], batch_size: int = _BATCH_ROWS, signature: str = SERVING_DEFAULT
    ) -> list[dict[str, Any]]:
        """Returns a dict of plain Python values for each row; the arguments are those of `predict`.

        For their keys see `kbert.tasks.registry.json_answer`.
        """
        check_batch_size(batch_size)
        columns = self._columns(texts, signature)

        def run(rows: np.ndarray) -> dict[str, np.ndarray]:
            chosen = {name: [column[i] for i in rows] for name, column in columns.items()}
            found = self.run(chosen, signature)
            return {key: found[key] for key in sorted(found)}

        # Row by row: a batch's padding to its longest row need not be extended to that of all.
        sizes = [sum(map(size_of, row)) for row in zip(*columns.values(), strict=True)]
        return [json_answer(row) for row in answers_of_rows(run, np.array(sizes), batch_size)]

    def _columns(self, texts: Sequence[Any], signature: str) -> dict[str, list[Any]]:
        names = self.input_names(signature)
        if len(texts) == 1 and isinstance(texts[0], tuple) and len(names) > 1:
            (texts,) = texts  # as models in Python take several columns
        if len(texts) == 1:
            table = read_columns(texts[0], tuple(names))
            if isinstance(table, dict):
                if set(table) != set(names):
                    raise ValueError(
                        f"`texts` must be a dict of the columns {names}. Received: {list(table)}"
                    )
                texts = [table[name] for name in names]
        for one in texts:
            if isinstance(one, str | bytes) or not isinstance(one, Iterable):
                what = "the single text " if isinstance(one, str | bytes) else ""
                raise ValueError(
                    f"`texts` must be lists of texts, one for each of {names}. "
                    f"Received: {what}{one!r:.80}"
                )
        columns = [list(column) for column in texts]
        if len(columns) != len(names) or len({len(column) for column in columns}) != 1:
            raise ValueError(
                f"`texts` must be {len(names)} list(s) of the same length, for {names}. Received: "
                f"{len(columns)} of {[len(column) for column in columns]} texts"
            )
        for given, column in zip(self.metadata["signatures"][signature]["inputs"], columns):
            if len(given["shape"]) == 1 and given["dtype"] == "string":
                checked_texts(given["name"], column)
        return dict(zip(names, columns))

    def __repr__(self) -> str:
        what = f"{self.metadata.get('class')} {self.metadata.get('name')!r}"
        return f"<Exported {what} version {self.metadata.get('version')}>"


def load_export(path: str | os.PathLike[str]) -> Exported:
    """Loads BASE/<model>/<version>, or the highest version of BASE/<model>; see `find_export`.

    From where only `tf.io.gfile` reads, such as gs://, the version is copied to this machine while
    it is loaded.
    """
    if not is_remote(path):
        return Exported(find_export(path))
    with fetched(found_version(path)) as folder:
        return Exported(folder)


def found_version(path: str | os.PathLike[str]) -> str:
    """Returns the version folder of an export, absolute, or by its name with a scheme."""
    name = os.fspath(path).rstrip("/")
    if not is_remote(name):
        return os.path.abspath(find_export(path))
    gfile = tf.io.gfile
    children = [entry.rstrip("/") for entry in gfile.listdir(name)] if gfile.isdir(name) else []
    folders = {int(child): f"{name}/{child}" for child in children if is_version(child)}
    complete = {n: one for n, one in folders.items() if gfile.exists(f"{one}/{SAVED_MODEL_FILE}")}
    if SAVED_MODEL_FILE not in children and not complete:
        raise FileNotFoundError(
            "`path` must be an export, BASE/<model> or BASE/<model>/<version> with a "
            f"{SAVED_MODEL_FILE}. Received: path={name!r}"
        )
    return name if SAVED_MODEL_FILE in children else complete[max(complete)]


class ExportedTask:
    """One of several tasks of an export; its name is that of its signature."""

    def __init__(self, export: Exported, name: str) -> None:
        self.export = export
        self.name = name
        self.labels: list[str] | None = export.metadata["tasks"][name].get("labels")

    def predict(self, *texts: Sequence[Any]) -> dict[str, np.ndarray]:
        """Runs the task on n raw texts for each input; see `Exported.predict`."""
        return self.export.predict(*texts, signature=self.name)

    def answers(self, *texts: Sequence[Any]) -> list[dict[str, Any]]:
        """Returns a dict of plain Python values for each row; see `Exported.answers`."""
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
        TypeError: `directory` is no path.
    """
    if not isinstance(directory, str | os.PathLike):
        raise TypeError(f"`directory` must be a path or a name. Received: {directory!r:.80}")
    if not os.fspath(directory):
        raise ValueError("`directory` must be a path or a name. Received: an empty one")
    try:
        path = find_export(directory)
        is_export = (path / METADATA_FILE).is_file()
    except FileNotFoundError:
        if exports := exports_in(directory):
            raise ValueError(
                f"`directory` must be one export. Received: {directory}, which holds exports: "
                f"{', '.join(map(os.fspath, exports))}"
            ) from None
        is_export = False
    if not is_export:
        return load_model(directory, **kwargs)
    if kwargs:
        raise ValueError(
            "`kbert.load` must have no further arguments for an export, which is as it was "
            f"written. Received: {', '.join(kwargs)} for {directory}"
        )
    found = Exported(path)
    return {name: ExportedTask(found, name) for name in found.tasks} or found

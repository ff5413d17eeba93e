"""Models as SavedModels that TF Serving serves from raw strings."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from kbert import __version__
from kbert.serving.compatibility import check_export
from kbert.serving.metadata import write_metadata
from kbert.serving.signatures import Signature
from kbert.serving.version_folders import new_version
from kbert.storage.atomic_directory import atomic_directory

# Attributes of a model that a reader of the export may want to know, where the model has them.
_ATTRIBUTES = ("labels", "max_sequence_length", "pair")

Endpoints = dict[str, tuple[Callable[..., Any], list[tf.TensorSpec]]]


def export(
    model: Any,
    base: str | os.PathLike[str],
    name: str | None = None,
    version: int | None = None,
) -> Path:
    """Writes BASE/<name>/<version>/, a SavedModel with a signature for each function of the model.

    The folder appears whole or not at all: it is written beside its place, under a name that TF
    Serving takes for no version, checked by `check_export`, and renamed. Weights are stored once;
    dropout is off; batch and length stay free. `assets.extra/kbert.json` tells what it is.

    Args:
        model: A model with `signatures()`, which gives for each name a function of tensors and the
            specs of its arguments: each spec named, the first dimension the batch. The first
            signature becomes "serving_default" too. A function may capture variables and eager
            constants, no lookup tables.
        base: The folder of all models.
        name: The model's name for the server; the Keras model's name by default.
        version: An integer of at least 1; one more than the highest present by default.

    Returns:
        The version folder.

    Raises:
        TypeError: `model` has no `signatures()`.
        ValueError: Name, version or a signature cannot be served.
        FileExistsError: The version is there already.
    """
    if not callable(getattr(model, "signatures", None)):
        raise TypeError(
            "`model` must have `signatures()`, as kbert's models on raw texts have. "
            f"Received: {type(model).__name__}"
        )
    name = model.name if name is None else name
    folder, number = new_version(base, name, version)
    endpoints = _checked(model.signatures())
    with atomic_directory(folder) as partial:
        _write_saved_model(endpoints, partial)
        report = check_export(partial)
        if report.problems:
            listed = "\n".join(f"- {problem}" for problem in report.problems)
            raise ValueError(f"`model.signatures()` must be servable. Received:\n{listed}")
        write_metadata(
            partial,
            {
                "class": type(model).__name__,
                "name": name,
                "version": number,
                **{key: getattr(model, key) for key in _ATTRIBUTES if hasattr(model, key)},
                "signatures": _described(endpoints, report.signatures),
                "kbert_version": __version__,
                "keras_version": keras.__version__,
                "tensorflow_version": tf.__version__,
            },
        )
    return folder


def _checked(signatures: Any) -> Endpoints:
    """The signatures, if every argument is named and has a batch dimension."""
    if not isinstance(signatures, dict) or not signatures:
        raise ValueError(
            f"`model.signatures()` must be a dict with an entry. Received: {signatures!r}"
        )
    for name, (_, specs) in signatures.items():
        for spec in specs:
            if not spec.name or not spec.shape.rank or spec.shape[0] is not None:
                raise ValueError(
                    f"`model.signatures()[{name!r}]` must have specs with a name and a free first "
                    f"dimension, the batch. Received: {spec}"
                )
    return signatures


def _write_saved_model(endpoints: Endpoints, folder: Path) -> None:
    """Writes the graph and the weights.

    Endpoints alone: `track(model)` would store the weights a second time.
    """
    archive = keras.export.ExportArchive()
    for name, (function, specs) in endpoints.items():
        archive.add_endpoint(name, function, list(specs))
    archive.write_out(str(folder), verbose=False)


def _described(endpoints: Endpoints, written: dict[str, Signature]) -> dict[str, Any]:
    """The signatures for kbert.json: inputs in the order of the function's arguments."""
    described = {}
    for name, signature in written.items():
        source = name if name in endpoints else next(iter(endpoints))
        order = [spec.name for spec in endpoints[source][1]]
        described[name] = {
            "inputs": [{"name": key, **signature.inputs[key].as_json()} for key in order],
            "outputs": [{"name": k, **tensor.as_json()} for k, tensor in signature.outputs.items()],
        }
    return described

"""Export of models as SavedModels that TF Serving serves from raw strings."""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from kbert import __version__
from kbert.gradients import without_gradients
from kbert.serving.export.base_files import write_base_files
from kbert.serving.export.request_batching import batching_of, can_join, served_function
from kbert.serving.export.request_checks import InputLimits
from kbert.serving.export.write_bundle import Traced, model_of, write_bundle
from kbert.serving.format.batching_file import MAX_BATCH_SIZE
from kbert.serving.format.servable import check_export
from kbert.serving.format.signatures import (
    SERVING_DEFAULT,
    WEIGHTS,
    Signature,
    read_meta_graph,
    signatures_of,
)
from kbert.serving.format.version_folders import new_version, remove_old_versions
from kbert.serving.precision.conversion import in_precision
from kbert.serving.precision.substitutes import WeightSubstitutes
from kbert.storage.files import atomic_directory, file_lock, remove_leftovers

logger = logging.getLogger(__name__)
# Held by the one running export into a folder of models.
LOCK = ".kbert.lock"
_WAITING = "Another export into %s is going on; this one waits for it."

# Attributes of a model that the metadata lists, where the model has them.
_ATTRIBUTES = ("labels", "thresholds", "max_sequence_length", "pair", "tasks", "image_fit")
_ABSENT = object()


def export(
    model: Any,
    base: str | os.PathLike[str],
    name: str | None = None,
    version: int | None = None,
    *,
    max_batch_size: int = MAX_BATCH_SIZE,
    keep: int | None = None,
    about: Mapping[str, Any] | None = None,
    precision: str | None = None,
    frozen: bool = False,
) -> Path:
    """Writes BASE/<name>/<version>/, a SavedModel with a signature for each function of the model.

    The folder appears atomically: it is written beside it, under a name that TF Serving does not
    take for a version, checked by `check_export`, and renamed. Weights are stored once; dropout is
    off; batch and length stay free. For the files beside the SavedModel see
    `kbert.serving.export.write_bundle`. Then the files of BASE are rewritten, see
    `kbert.serving.export.base_files`. Exports into one BASE wait for each other.

    Args:
        model: A model with `signatures()`, which returns for each name a function of tensors and
            the specs of its arguments: each spec named, the first dimension the batch. The first
            signature becomes "serving_default" too. A function may capture variables and eager
            constants, but not lookup tables.
        base: The folder of all models.
        name: The model's name on the server; the Keras model's name by default.
        version: An integer of at least 1; one more than the highest existing one by default.
        max_batch_size: The most rows of a batch, to which the graph joins requests that meet; 0
            for none.
        keep: Number of the highest versions to keep; None for all.
        about: Facts about the training for the model card; see `kbert.serving.export.base_files`.
        precision: "float32", "bfloat16" or "int8", see `kbert.serving.precision`; None for
            the model's own.
        frozen: Whether the weights of an encoder, its tables excepted, or of the steps of a
            translator's search are constants of the graph: a short text is answered sooner, and a
            running model needs more memory.

    Returns:
        The version folder.

    Raises:
        TypeError: `model` has no `signatures()`, or `base` is no path.
        ValueError: Name, version or a signature cannot be served, a number is wrong, the model
            cannot be converted to that precision, or its weights cannot be frozen.
        FileExistsError: The version exists already.
    """
    endpoints_of(model)  # raises before anything is made
    name = model.name if name is None else name
    check_arguments(base, name, version, max_batch_size, keep)
    merged = getattr(getattr(model, "encoder", None), "merged_adapter", nullcontext)
    with merged():
        written = in_precision(model, precision)
        substitutes = WeightSubstitutes([written])
        substitutes.store_small(precision)
        if frozen:
            substitutes.freeze()
        return write_export(written, substitutes, base, name, version, max_batch_size, keep, about)


def write_export(
    model: Any,
    substitutes: WeightSubstitutes,
    base: str | os.PathLike[str],
    name: str,
    version: int | None,
    max_batch_size: int,
    keep: int | None,
    about: Mapping[str, Any] | None,
) -> Path:
    """Writes BASE/<name>/<version>/ of a model in its own precision; see `export`.

    `substitutes` are what is stored instead of the model's variables.
    """
    endpoints = endpoints_of(model)
    limits = {task: InputLimits.of(model_of(model, task)) for task in endpoints}
    batching = batching_of(max_batch_size)
    if not any(can_join(specs, limits[task]) for task, (_, specs) in endpoints.items()):
        batching = None
    served: Traced = {
        task: (
            served_function(substitutes.function(function, task), specs, limits[task], batching),
            specs,
        )
        for task, (function, specs) in endpoints.items()
    }
    Path(base).mkdir(parents=True, exist_ok=True)
    with file_lock(Path(base, LOCK), lambda: logger.warning(_WAITING, base)):
        folder, number = new_version(base, name, version)
        remove_leftovers(folder.parent)
        with _nothing_left_of(folder), atomic_directory(folder) as partial:
            traced = _write_saved_model(served, partial)
            report = check_export(partial)
            if report.problems:
                listed = "\n".join(f"- {problem}" for problem in report.problems)
                raise ValueError(f"`model.signatures()` must be servable. Received:\n{listed}")
            metadata = {
                "class": type(model).__name__,
                "name": name,
                "version": number,
                **described(model),
                "signatures": _described(endpoints, signatures_of(read_meta_graph(partial))),
                "kbert_version": __version__,
                "keras_version": keras.__version__,
                "tensorflow_version": tf.__version__,
                **({"precision": "int8"} if substitutes.stores_int8 else {}),
                **({"integer_products": True} if substitutes.multiplies_integers else {}),
                **({"frozen": True} if substitutes.is_frozen else {}),
                **({"shortlist": True} if getattr(model, "shortlist", None) is not None else {}),
            }
            write_bundle(partial, model, traced, report, metadata, batching, about)
        remove_old_versions(folder.parent, keep, spare=number)
        write_base_files(base)
    return folder


@contextmanager
def _nothing_left_of(folder: Path) -> Iterator[None]:
    """Removes the folder of a model without versions, and the lock of one without models, where
    the block fails; the lock is held.
    """
    try:
        yield
    except BaseException:
        with suppress(OSError):  # it holds other versions
            folder.parent.rmdir()
        base = folder.parent.parent
        if [one.name for one in base.iterdir()] == [LOCK]:
            (base / LOCK).unlink()
        raise


def check_arguments(
    base: str | os.PathLike[str],
    name: str,
    version: int | None,
    max_batch_size: int,
    keep: int | None,
) -> None:
    """Raises for arguments of `export` that are wrong whatever the model is."""
    if keep is not None and (not isinstance(keep, int) or keep < 1):
        raise ValueError(f"`keep` must be an integer of at least 1. Received: keep={keep!r}")
    batching_of(max_batch_size)
    new_version(base, name, version)


def described(model: Any) -> dict[str, Any]:
    """Returns the attributes of a model that its metadata list, where it has them."""
    found = {key: getattr(model, key, _ABSENT) for key in _ATTRIBUTES}
    return {key: value for key, value in found.items() if value is not _ABSENT}


def endpoints_of(model: Any) -> Traced:
    """Returns the model's signatures, after a check that arguments have names and a batch."""
    if not callable(getattr(model, "signatures", None)):
        raise TypeError(
            "`model` must have `signatures()`, as kbert's models on raw texts have. "
            f"Received: {type(model).__name__}"
        )
    signatures = model.signatures()
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


def _write_saved_model(endpoints: Traced, folder: Path) -> Traced:
    """Writes the graph and the weights; returns the functions of the graph, callable in Python.

    Each is traced once: a `tf.function` that is saved as such, and not as a concrete function, is
    traced a second time by TensorFlow. Only the weights that the functions read are stored.
    """
    # Exports are not trained, and TensorFlow's gradient registry would hold each model that was
    # loaded into Python for ever: a server that replaces models would grow with each.
    with without_gradients():
        traced = {
            name: (tf.function(function, specs, autograph=False), list(specs))
            for name, (function, specs) in endpoints.items()
        }
        signatures = {name: one.get_concrete_function() for name, (one, _) in traced.items()}
        module = tf.Module()
        read = {id(v): v for one in signatures.values() for v in one.variables}
        setattr(module, WEIGHTS, list(read.values()))
        signatures.setdefault(SERVING_DEFAULT, next(iter(signatures.values())))
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
        tf.saved_model.save(module, str(folder), signatures, options)
    return traced


def _described(endpoints: Traced, written: dict[str, Signature]) -> dict[str, Any]:
    """Returns the signatures for kbert.json, inputs in the order of the function's arguments."""
    described = {}
    for name, signature in written.items():
        source = name if name in endpoints else next(iter(endpoints))
        order = [spec.name for spec in endpoints[source][1]]
        described[name] = {
            "inputs": [{"name": key, **signature.inputs[key].as_json()} for key in order],
            "outputs": [{"name": k, **tensor.as_json()} for k, tensor in signature.outputs.items()],
        }
    return described

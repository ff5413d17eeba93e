"""The files of an export beside its SavedModel: warm-up, batching, metadata, answers, a card."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.serving.bundle.golden_answers import TOLERANCES, GoldenAnswer, write_golden
from kbert.serving.bundle.model_card import write_card
from kbert.serving.bundle.sample_inputs import sample_inputs, text_lengths
from kbert.serving.bundle.warmup import write_warmup
from kbert.serving.format.batching_file import Batching, batching_for, write_batching
from kbert.serving.format.metadata import write_metadata
from kbert.serving.format.prediction_log import PredictRequest
from kbert.serving.format.servable import ExportReport
from kbert.serving.format.server_versions import least_server
from kbert.serving.format.version_folders import SAVED_MODEL_FILE
from kbert.serving.format.weights_on_disk import weights_of

# Name of a signature -> its function in the graph, and the specs of its inputs.
Traced = Mapping[str, tuple[Callable[..., Any], Sequence[tf.TensorSpec]]]


def write_bundle(
    export_dir: str | os.PathLike[str],
    model: Any,
    traced: Traced,
    report: ExportReport,
    metadata: dict[str, Any],
    max_batch_size: int,
    about: Mapping[str, Any] | None,
) -> None:
    """Writes these files into a version folder that holds the SavedModel already.

    Args:
        export_dir: The folder.
        model: The model.
        traced: Its signatures. Others of the SavedModel are aliases of the first of these.
        report: Report of the check of the SavedModel.
        metadata: The contents of kbert.json; sizes and batching are added here.
        max_batch_size: The most rows of a server's batch; 0 for no batching.
        about: Facts about the training for the card; see `kbert.serving.bundle.model_card`.

    Raises:
        ValueError: `max_batch_size` is negative.
    """
    first = next(iter(traced))
    called = {name: traced[name if name in traced else first] for name in report.signatures}
    batching = batching_for(report.signatures, max_batch_size)
    if batching is not None:
        write_batching(export_dir, batching)
    write_warmup(export_dir, warmup_requests(metadata["name"], model, called, batching))
    write_golden(export_dir, list(golden_answers(model, called)))
    metadata = {
        "precision": _compute_dtype(model),
        **metadata,
        "batching": None if batching is None else batching.as_json(),
        "weights": asdict(weights_of(export_dir)),
        "graph_bytes": Path(export_dir, SAVED_MODEL_FILE).stat().st_size,
        "compute_dtype": _compute_dtype(model),
        "least_server": least_server({*report.core_ops, *report.text_ops}),
    }
    write_metadata(export_dir, metadata)
    write_card(export_dir, metadata, about)


def warmup_requests(
    name: str, model: Any, signatures: Traced, batching: Batching | None
) -> Iterator[PredictRequest]:
    """Yields requests for each signature and batch size, of texts of several lengths.

    There are three requests of one row, one of each length; in larger batches the lengths
    alternate.

    Args:
        name: The model's name on the server.
        model: The model.
        signatures: Its signatures.
        batching: The batch sizes; None for requests of one row only.
    """
    sizes = (1,) if batching is None else batching.allowed_batch_sizes
    for signature, (_, specs) in signatures.items():
        task = _model_of(model, signature)
        _, short, middling = lengths = text_lengths(task)
        for words in ([short], [middling]):
            yield PredictRequest(name, signature, sample_inputs(specs, task, words))
        for size in sizes:
            words = [lengths[i % len(lengths)] for i in range(size)]
            yield PredictRequest(name, signature, sample_inputs(specs, task, words))


def golden_answers(model: Any, signatures: Traced) -> Iterator[GoldenAnswer]:
    """Yields a request for each signature, with the answer of the exported function.

    Args:
        model: The model.
        signatures: Its signatures.
    """
    for name, (function, specs) in signatures.items():
        task = _model_of(model, name)
        inputs = sample_inputs(specs, task, text_lengths(task), hard=True)
        answers = function(*(tf.constant(inputs[spec.name], spec.dtype) for spec in specs))
        outputs = {key: np.asarray(value) for key, value in answers.items()}
        yield GoldenAnswer(name, inputs, outputs, TOLERANCES.get(_compute_dtype(model), 1e-4))


def _model_of(model: Any, signature: str) -> Any:
    """The model that a signature belongs to, where there are several in one."""
    return getattr(model, "models_by_signature", {}).get(signature, model)


def _compute_dtype(model: Any) -> str:
    return str(getattr(model, "compute_dtype", None) or "float32")

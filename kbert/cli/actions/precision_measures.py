"""Quality and speed of precisions, measured on a labelled file, for the card of an export."""

import platform
import timeit
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from kbert.cli.actions.answering import Row, live_answering
from kbert.cli.actions.model_kinds import columns_of
from kbert.models.weights import named_weights
from kbert.serving.format.signatures import SERVING_DEFAULT
from kbert.serving.precision.conversion import in_precision
from kbert.serving.precision.integer_products import integer_products
from kbert.serving.precision.rounding import integer_layers, integer_matrices, product_matrix
from kbert.serving.precision.small_weights import (
    Int8Weight,
    is_stored_as_half,
    is_stored_as_int8,
)
from kbert.serving.precision.substitutes import WeightSubstitutes
from kbert.tasks.finetuned_task import FinetunedTask
from kbert.tasks.registry import task_of

_MOST_ROWS = 256
_ROUNDS = 3
_CPU_INFO = Path("/proc/cpuinfo")


def measure_precisions(
    model: Any,
    run: Path,
    file: Path,
    precisions: Sequence[str | None],
    frozen: bool = False,
) -> dict[str, Any]:
    """Measures a model in several precisions: the task's metrics, and rows per second.

    The speed is that of the exported function, called in Python with batches of 32 rows at most:
    the median of three rounds over the file's first 256 rows, after a warm-up round. The
    precisions are those of `in_precision`; None is left out where another is the model's own.
    `frozen` and an active LoRA adapter are as in `kbert.serving.export.export`. Returns the entry
    of precisions for `kbert.serving.export.base_files`.
    """
    task = task_of(model)
    if not isinstance(task, FinetunedTask):
        raise ValueError(
            "`--measure` must be given for a model that classifies, scores, chooses or reads. "
            f"Received: a {type(model).__name__}"
        )
    examples = task.measured_examples(file, columns_of(run), model)
    if task.averages and examples.labels is None:
        raise ValueError(f"{examples.source}: the examples must have labels. Received: none")
    rows = task.rows(examples)[:_MOST_ROWS]
    of: dict[str, Any] = {}
    with getattr(model.encoder, "merged_adapter", nullcontext)():
        for precision in precisions:
            name = precision or str(model.compute_dtype)
            if name in of:
                continue
            measured = in_precision(model, precision)
            with as_exported(measured, precision):
                metrics, _ = task.measure(measured, examples)
            of[name] = {
                "weight_bytes": _weight_bytes(measured, precision),
                "rows_per_second": _rows_per_second(measured, precision, rows, frozen),
                "metrics": {k: float(v) for k, v in metrics.items() if isinstance(v, int | float)},
            }
    about = {"source": file.name, "examples": len(examples), "processor": _processor()}
    return {**about, "of": of}


def as_exported(model: Any, precision: str | None) -> AbstractContextManager[None]:
    """Makes a model of `in_precision` multiply what its export does: integers for int8."""
    layers = integer_layers(model) if precision == "int8" else []
    matrices = {id(one): one for one in map(product_matrix, layers)}  # ALBERT's layers are one
    roundings = integer_matrices(model)
    stored = {key: Int8Weight(matrix, roundings[key]) for key, matrix in matrices.items()}
    return integer_products(layers, lambda matrix: stored.get(id(matrix)))


def _rows_per_second(model: Any, precision: str | None, rows: list[Row], frozen: bool) -> float:
    substitutes = WeightSubstitutes([model])
    substitutes.store_small(precision)
    if frozen:
        substitutes.freeze()
    function, specs = model.signatures()[SERVING_DEFAULT]
    exported = {SERVING_DEFAULT: (substitutes.function(function), specs)}
    answering = live_answering(SimpleNamespace(signatures=lambda: exported))
    answering.answers(rows)
    times = timeit.repeat(lambda: answering.answers(rows), number=1, repeat=_ROUNDS)
    return len(rows) / float(np.median(times))


def _weight_bytes(model: Any, precision: str | None) -> int:
    size = 0
    for variable in named_weights(model).values():
        width = 2 if "16" in variable.dtype or is_stored_as_half(variable) else 4
        if precision == "int8" and is_stored_as_int8(variable):
            width = 1
        size += int(np.prod(variable.shape)) * width
    return size


def _processor() -> str:
    """Returns the CPU's name in Linux, or the machine type."""
    lines = _CPU_INFO.read_text("utf-8").splitlines() if _CPU_INFO.is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()

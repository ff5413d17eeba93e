"""Prediction files for the GLUE server.

Source: gluebenchmark.com/faq and the benchmark's own baselines (nyu-mll/GLUE-baselines): one TSV
file a test set, with the header `index`, `prediction`.
"""

import math
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kbert.data.classification.glue_tasks import GlueTask, glue_task
from kbert.data.tables.table import nearest
from kbert.storage.atomic_directory import write_atomically


def write_glue_submission(
    task: str,
    predictions: Sequence[Any],
    directory: str | os.PathLike[str],
    ids: Sequence[str | int] | None = None,
    *,
    split: str = "test",
) -> Path:
    """Writes the predictions for a test set to the file that the GLUE server expects.

    Warns (`UserWarning`) where the number of rows is not that of the official test set.

    Args:
        task: name of the GLUE task, such as "sst2" or "SST-2".
        predictions: one class name or class number a test row; for STS-B one score, which is
            clipped to 0..5 and written with 3 decimals.
        directory: folder of the file; created if it is missing.
        ids: the rows' ids, in the order of the predictions; None numbers them from 0.
        split: for MNLI "test_matched" (what "test" means) or "test_mismatched".

    Returns:
        Path of the written file, such as `directory/SST-2.tsv` or `directory/MNLI-mm.tsv`.

    Raises:
        ValueError: unknown task or split, no predictions, a prediction that is not a class of the
            task or a finite score, or ids that do not fit.
    """
    known = glue_task(task)
    name = _file_name(known, split)
    if len(predictions) == 0:
        raise ValueError("`predictions` must hold one item a test row. Received: none")
    if ids is None:
        ids = range(len(predictions))
    if len(ids) != len(predictions) or len(set(ids)) != len(ids):
        raise ValueError(
            f"`ids` must be {len(predictions)} different ids, one a prediction. Received: "
            f"{len(ids)} ids, {len(set(ids))} of them different"
        )
    rows = known.test_rows[name]
    if len(predictions) != rows:
        warnings.warn(
            f"{name}: the official test set has {rows} rows. Received: {len(predictions)}; the "
            "GLUE server will refuse this file.",
            stacklevel=2,
        )
    lines = ["index\tprediction"]
    lines += [f"{id}\t{_answer(known, p, i)}" for i, (id, p) in enumerate(zip(ids, predictions))]
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / name, "\n".join(lines) + "\n")
    return folder / name


def _file_name(task: GlueTask, split: str) -> str:
    names = list(task.test_rows)
    if len(names) == 1:
        allowed = {"test": names[0]}
    else:
        allowed = {"test": names[0], "test_matched": names[0], "test_mismatched": names[1]}
    if split not in allowed:
        raise ValueError(
            f"`split` must be one of {', '.join(allowed)} for the task {task.name}. Received: "
            f"split={split!r}.{nearest(split, allowed)}"
        )
    return allowed[split]


def _answer(task: GlueTask, prediction: Any, row: int) -> str:
    if task.label_range is not None:
        low, high = task.label_range
        score = float(prediction)
        if not math.isfinite(score):
            raise ValueError(
                f"`predictions` must be finite scores. Received: predictions[{row}]={score}"
            )
        return f"{min(max(score, low), high):.3f}"
    name = str(prediction)
    if name in task.labels:
        return task.submission_labels[task.labels.index(name)]
    if name.isdecimal() and int(name) < len(task.labels):
        return task.submission_labels[int(name)]
    raise ValueError(
        f"`predictions` must be classes of {task.folder}, {', '.join(task.labels)}, or their "
        f"numbers. Received: predictions[{row}]={prediction!r}.{nearest(name, task.labels)}"
    )

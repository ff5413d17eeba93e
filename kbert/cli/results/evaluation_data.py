"""Examples and results of `kbert evaluate`, and submissions to the GLUE server."""

from pathlib import Path
from typing import Any

from kbert.cli.models.model_kinds import columns_of, task_of
from kbert.data.classification.glue_submission import write_glue_submission
from kbert.data.classification.glue_tasks import glue_task, read_glue
from kbert.tasks.registry import finetuned_task
from kbert.training.finetuning.ensemble import Averaged, predict_average


def read_examples(
    run: Path,
    file: Path | None,
    glue: tuple[str | None, Path | None, str],
    columns: dict[str, str | None],
) -> tuple[Any, str | None]:
    """Reads the examples to evaluate a run on.

    Args:
        run: The first run, or a model's folder.
        file: A file of examples; None with a GLUE task.
        glue: The GLUE task, its folder and the split.
        columns: `text_a`, `text_b` and `label`, by name or index; None for the run's own.

    Returns:
        The examples, and the GLUE task whose metrics apply, or None.

    Raises:
        ValueError: The file, a column or a label is wrong.
        FileNotFoundError: A file is missing, or the run is not finished.
    """
    task, folder, split = glue
    if task is not None and folder is not None:
        return read_glue(task, folder, split), glue_task(task).name
    if file is None:
        raise ValueError("`file` must be given without a GLUE task. Received: file=None")
    measured = finetuned_task(task_of(run))
    return measured.measured_examples(file, columns_of(run, columns)), None


def evaluate_runs(
    runs: list[Path],
    examples: Any,
    task: str | None,
    split: str,
    submission: Path | None,
) -> dict[str, Any]:
    """Evaluates the mean of the runs' predictions, and optionally writes the GLUE server's file.

    Args:
        runs: One or more runs.
        examples: From `read_examples`.
        task: The GLUE task, or None.
        split: The split of the GLUE task.
        submission: The folder of the GLUE server's file, or None.

    Returns:
        Facts about the examples, the metrics if they have labels, the file if one was written; as
        JSON types.

    Raises:
        ValueError: The models do not fit the examples; there is neither a label nor a submission;
            or the submission has no GLUE task, no test split or other labels than the model.
    """
    if submission is None and examples.labels is None:
        raise ValueError(
            f"{examples.source}: the examples must have labels to be measured (or give "
            "--submission). Received: none"
        )
    if submission is not None and task is None:
        raise ValueError("`--submission` must be given together with `--glue`. Received: no task")
    averaged = predict_average(runs, examples)
    result: dict[str, Any] = {
        "models": [str(run) for run in runs],
        "source": examples.source,
        "examples": len(examples),
    }
    if examples.labels is not None:
        kind = averaged.task
        right = kind.targets(examples, averaged.labels)
        numbers = kind.measure_predictions(right, averaged.predictions, averaged.labels, task)
        result["metrics"] = numbers
    if submission is not None and task is not None:
        file = _write_submission(task, split, examples, averaged, submission)
        result["submission"] = str(file)
    return result


def _write_submission(
    task: str, split: str, examples: Any, averaged: Averaged, folder: Path
) -> Path:
    """Writes predictions in the GLUE server's format; returns the file."""
    if averaged.labels is None:
        answers = averaged.predictions.tolist()
    else:
        answers = [averaged.labels[i] for i in averaged.predictions.argmax(axis=-1)]
    return write_glue_submission(task, answers, folder, examples.ids, split=split)

"""Results of `kbert evaluate` for models that read texts in windows."""

from pathlib import Path
from typing import Any

from kbert.cli.models.model_kinds import columns_of, task_of
from kbert.data.questions.squad import write_predictions
from kbert.tasks.registry import finetuned_task
from kbert.training.runs.load_model import load_model


def evaluate_reading(
    runs: list[Path], file: Path, label: str | None, predictions: Path | None
) -> dict[str, Any]:
    """Evaluates a model on questions or on tagged sentences.

    Args:
        runs: One run, or a model's folder.
        file: The examples.
        label: The column of the tags, or None for the run's own.
        predictions: Path of the official predictions file to write, or None.

    Returns:
        Facts about the examples, and the metrics, as JSON types.

    Raises:
        ValueError: There are several runs, the file is wrong, or there is nothing to predict.
    """
    if len(runs) > 1:
        raise ValueError(
            "`kbert evaluate` must have one run where the task is to read. "
            f"Received: {', '.join(map(str, runs))}"
        )
    task = finetuned_task(task_of(runs[0]))
    if predictions is not None and not task.has_answer_file:
        raise ValueError("`--predictions` must be given for a run of question answering only.")
    model = load_model(runs[0])
    examples = task.measured_examples(file, columns_of(runs[0], {"label": label}), model)
    metrics, answers = task.measure(model, examples)
    result: dict[str, Any] = {"models": [str(runs[0])], "source": str(file)}
    if predictions is not None:
        result["predictions"] = str(write_predictions(predictions, answers))
    return {**result, "examples": len(examples), "metrics": metrics}

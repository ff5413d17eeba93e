"""What `kbert evaluate` finds for models that read."""

from pathlib import Path
from typing import Any

from kbert.data.question_examples import QuestionExamples
from kbert.data.squad import read_questions
from kbert.data.squad_predictions import write_predictions
from kbert.training.averaging import load_model
from kbert.training.reading_data import read_sentences
from kbert.training.reading_evaluation import measure_answers, measure_entities, measure_spans
from kbert.training.run_config import RunConfig
from kbert.training.run_directory import is_run, load_run


def evaluate_reading(
    runs: list[Path], file: Path, label: str | None, predictions: Path | None
) -> dict[str, Any]:
    """Measures a model on questions or on tagged sentences.

    Args:
        runs: One run, or a model's folder.
        file: The examples.
        label: The column of the tags, or None for the run's own.
        predictions: Where to write the official predictions file, or None.

    Returns:
        What is known of the examples, and the metrics, as JSON can hold them.

    Raises:
        ValueError: There are several runs, the file is wrong, or there is nothing to predict.
    """
    if len(runs) > 1:
        raise ValueError(
            "`kbert evaluate` must have one run where the task is to read. "
            f"Received: {', '.join(map(str, runs))}"
        )
    model = load_model(runs[0])
    result: dict[str, Any] = {"models": [str(runs[0])], "source": str(file)}
    if hasattr(model, "predict_tags"):
        sentences = read_sentences(str(file), _config(runs[0], model, label), "test")
        return {
            **result,
            "examples": len(sentences),
            "metrics": measure_entities(model, sentences),
        }
    examples: QuestionExamples = read_questions(file)
    if hasattr(model, "null_threshold"):
        metrics, answers = measure_answers(model, examples)
    elif predictions is not None:
        raise ValueError("`--predictions` must be given for a run of question answering only.")
    else:
        metrics, answers = measure_spans(model, examples), {}
    if predictions is not None:
        result["predictions"] = str(write_predictions(predictions, answers))
    return {**result, "examples": len(examples), "metrics": metrics}


def _config(run: Path, model: Any, label: str | None) -> RunConfig:
    """A configuration that says how sentences are read."""
    config = load_run(run).config if is_run(run) else None
    scheme = "iobes" if any(tag[:2] in ("E-", "S-") for tag in model.labels) else "bio"
    column = config.label if isinstance(config, RunConfig) and label is None else label
    number = int(column) if isinstance(column, str) and column.lstrip("-").isdecimal() else column
    values = {"task": "ner", "train": "-", "encoder": "-", "output": "-"}
    return RunConfig.from_dict({**values, "tag_scheme": scheme, "label": number})

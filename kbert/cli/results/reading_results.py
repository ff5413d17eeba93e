"""What `kbert evaluate` finds for models that read."""

from pathlib import Path
from typing import Any

from kbert.data.entities.tagged_sentences import TaggedSentences
from kbert.data.questions.question_examples import QuestionExamples
from kbert.data.questions.squad import read_questions
from kbert.data.questions.squad_predictions import write_predictions
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.finetuning.reading_evaluation import (
    measure_answers,
    measure_entities,
    measure_spans,
)
from kbert.training.finetuning.reading_examples import aligned_questions, read_sentences
from kbert.training.runs.load_model import load_model
from kbert.training.runs.run_directory import is_run, load_run


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
    if predictions is not None and not hasattr(model, "null_threshold"):
        raise ValueError("`--predictions` must be given for a run of question answering only.")
    examples = reading_examples(model, runs[0], file, label)
    metrics, answers = measure_reading(model, examples)
    result: dict[str, Any] = {"models": [str(runs[0])], "source": str(file)}
    if predictions is not None:
        result["predictions"] = str(write_predictions(predictions, answers))
    return {**result, "examples": len(examples), "metrics": metrics}


def reading_examples(
    model: Any, run: Path, file: Path, label: str | None = None
) -> TaggedSentences | QuestionExamples:
    """Reads questions, or tagged sentences for a model that has tags.

    Args:
        model: The model.
        run: Where it lies: a run or a model's folder.
        file: The examples.
        label: The column of the tags, or None for the run's own.

    Raises:
        ValueError: The file is wrong.
    """
    if hasattr(model, "predict_tags"):
        return read_sentences(str(file), _config(run, model, label), "test")
    examples = read_questions(file)
    # Answers are compared as texts, spans by their places.
    return examples if hasattr(model, "null_threshold") else aligned_questions(examples)


def measure_reading(
    model: Any, examples: TaggedSentences | QuestionExamples
) -> tuple[dict[str, Any], dict[str, str]]:
    """Measures a model that reads.

    Args:
        model: The model.
        examples: From `reading_examples`.

    Returns:
        The metrics, and of question answering the answer of each id.
    """
    if isinstance(examples, TaggedSentences):
        return measure_entities(model, examples), {}
    if hasattr(model, "null_threshold"):
        return measure_answers(model, examples)
    return measure_spans(model, examples), {}


def _config(run: Path, model: Any, label: str | None) -> RunConfig:
    """A configuration that says how sentences are read."""
    config = load_run(run).config if is_run(run) else None
    scheme = "iobes" if any(tag[:2] in ("E-", "S-") for tag in model.labels) else "bio"
    column = config.label if isinstance(config, RunConfig) and label is None else label
    number = int(column) if isinstance(column, str) and column.lstrip("-").isdecimal() else column
    values = {"task": "ner", "train": "-", "encoder": "-", "output": "-"}
    return RunConfig.from_dict({**values, "tag_scheme": scheme, "label": number})

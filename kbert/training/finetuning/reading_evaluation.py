"""Measuring models that read, with the official metrics of their tasks."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kbert.data.entities.tagged_sentences import TaggedSentences
from kbert.data.questions.question_examples import QuestionExamples, required_answers
from kbert.metrics.entities import entity_metrics
from kbert.metrics.spans import exact_and_overlap_f1
from kbert.metrics.squad import squad2_metrics, squad_metrics
from kbert.pipelines.base.raw_text_batches import EVALUATION_TOKENS
from kbert.text.sequences.entities import entity_types
from kbert.training.finetuning.reading_examples import ReadingExamples
from kbert.training.finetuning.window_inputs import WindowInput

# What epochs may be compared by, the default first.
MONITORED = {
    "question-answering": ("f1", "exact_match"),
    "span-tagging": ("span_overlap_f1", "span_exact_f1"),
    "ner": ("f1", "precision", "recall", "strict_f1"),
}


@dataclass(frozen=True)
class PreparedReading:
    """Labelled examples of a reading task, cut into windows once.

    Attributes:
        input: The windows.
        examples: The examples.
    """

    input: WindowInput
    examples: ReadingExamples

    @property
    def right(self) -> np.ndarray:
        """The targets of the windows."""
        return self.input.targets

    def loss(self, model: Any) -> float:
        """Returns the mean loss of the windows.

        Args:
            model: The model that the examples were prepared for, compiled.
        """
        cut = {"batch_size": None, "batch_tokens": EVALUATION_TOKENS}
        batches = model.dataset(self.input.windows, self.right, **cut)
        return float(model.evaluate(batches, verbose=0, return_dict=True)["loss"])

    def measured(self, model: Any, tune: bool = False) -> dict[str, Any]:
        """Returns the metrics of a model's answers, as a dict that JSON can hold.

        Args:
            model: The model that the examples were prepared for.
            tune: Whether to give the model the threshold that is best for these examples.
        """
        if isinstance(self.examples, TaggedSentences):
            return measure_entities(model, self.examples)
        if hasattr(model, "null_threshold"):
            answered, _ = measure_answers(model, self.examples, tune)
            return answered
        return measure_spans(model, self.examples, tune)


@dataclass(frozen=True)
class TuningReading:
    """Validation examples: whenever a model is measured on them, they choose its threshold.

    Attributes:
        part: The examples.
    """

    part: PreparedReading

    def measured(self, model: Any) -> dict[str, Any]:
        """As that of `PreparedReading`, with `tune`, and the loss of the windows.

        Args:
            model: The model that the examples were prepared for, compiled.
        """
        metrics = self.part.measured(model, tune=True)
        # Several replicas evaluate together, in batches of one shape: there the loss stays unknown.
        return metrics if model.is_replicated else {"loss": self.part.loss(model), **metrics}


def validation_part(part: Any) -> Any:
    """What the epochs of a run are measured on.

    Args:
        part: The prepared validation examples, of any task, or None.
    """
    return TuningReading(part) if isinstance(part, PreparedReading) else part


def prepare_reading(model: Any, examples: ReadingExamples) -> PreparedReading:
    """Cuts labelled examples into windows for a model.

    Args:
        model: A `QuestionAnswerer`, `SpanTagger` or `EntityRecognizer`.
        examples: Labelled examples of its task.

    Raises:
        ValueError: The examples have no labels, or are of another task.
    """
    is_tagged = isinstance(examples, TaggedSentences)
    if is_tagged != hasattr(model, "predict_tags"):
        wanted = "sentences of tagged words" if hasattr(model, "predict_tags") else "questions"
        raise ValueError(
            f"{examples.source}: the examples must be {wanted} for a {type(model).__name__}. "
            f"Received: {'sentences' if is_tagged else 'questions'}"
        )
    labels: Any
    if isinstance(examples, TaggedSentences):
        labels = examples.tags
        if labels is None:
            raise ValueError(f"{examples.source}: the sentences must have tags. Received: none")
    else:
        labels = required_answers(examples)
        # Only where an answer stands can it be learned; metrics compare texts.
        labels = [
            [a for a in several if context.startswith(a.text, a.start)]
            for several, context in zip(labels, examples.contexts)
        ]
    windows, targets = model.examples(model.read_inputs(examples), labels)
    return PreparedReading(WindowInput(windows, targets), examples)


def trained_part(part: Any, config: Any) -> Any:
    """What a run trains on of its examples: of questions, as many windows as it says.

    Args:
        part: The prepared training examples, of any task.
        config: The run's configuration.
    """
    if not isinstance(part, PreparedReading) or config.other_windows is None:
        return part
    return replace(part, input=part.input.with_others(config.other_windows, config.seed))


def measure_answers(
    model: Any, examples: QuestionExamples, find_threshold: bool = False
) -> tuple[dict[str, Any], dict[str, str]]:
    """Measures a `QuestionAnswerer` with the official metrics of SQuAD 1.1 or 2.0.

    Args:
        model: The model.
        examples: Questions; SQuAD 2.0's metrics apply where some have no answer.
        find_threshold: Whether to give the model the threshold that is best for these questions,
            where some have no answer.

    Returns:
        The metrics, and the answer of each question by its id.
    """
    rows = model.predict(examples)
    gold = examples.answer_texts
    spans = {name: _text(row["nbest_answer"][0]) for name, row in zip(examples.ids, rows)}
    if all(examples.answers):
        answers = {name: _text(row["answer"]) for name, row in zip(examples.ids, rows)}
        return dict(squad_metrics(gold, answers)), answers
    scores = {name: float(row["null_score"]) for name, row in zip(examples.ids, rows)}
    found = squad2_metrics(gold, spans, scores)
    if find_threshold:
        model.null_threshold = float(found["best_f1_thresh"])
    threshold = model.null_threshold
    answers = {
        name: "" if threshold is not None and scores[name] > threshold else text
        for name, text in spans.items()
    }
    metrics = dict(squad2_metrics(gold, answers))
    best = {name: value for name, value in found.items() if name.startswith("best_")}
    return {
        "f1": metrics.pop("f1"),
        "exact_match": metrics.pop("exact"),
        **metrics,
        **best,
        "null_threshold": threshold,
    }, answers


def measure_spans(
    model: Any, examples: QuestionExamples, find_bias: bool = False
) -> dict[str, Any]:
    """Measures a `SpanTagger`: whole spans, and characters.

    Args:
        model: The model.
        examples: Questions; every different answer of a question counts as one that is to be found.
        find_bias: Whether to give the model the `outside_bias` that is best for these questions.
    """
    true = [
        [(a.start, a.start + len(a.text)) for a in several] for several in examples.answers
    ]
    if find_bias:
        by_bias = model.spans_with_biases(examples.questions, examples.contexts)
        found = {bias: exact_and_overlap_f1(true, spans) for bias, spans in by_bias.items()}
        # Where several are best, the one that changes least.
        model.outside_bias = max(found, key=lambda bias: (*_told(found[bias]), -abs(bias)))
        return {**found[model.outside_bias], "outside_bias": model.outside_bias}
    rows = model.predict(examples)
    predicted = [
        [(int(row["starts"][i]), int(row["ends"][i])) for i in range(row["count"])] for row in rows
    ]
    return {**exact_and_overlap_f1(true, predicted), "outside_bias": model.outside_bias}


def _told(metrics: Mapping[str, float]) -> list[float]:
    """The metrics that biases are compared by, the first first."""
    return [metrics[name] for name in MONITORED["span-tagging"]]


def measure_entities(model: Any, sentences: TaggedSentences) -> dict[str, Any]:
    """Measures an `EntityRecognizer` on sentences of given words.

    Args:
        model: The model.
        sentences: Sentences with tags in the model's scheme. A warning names types of theirs that
            the model cannot find.
    """
    known = entity_types(model.labels)
    tags = sorted({tag for row in sentences.tags or [] for tag in row})
    unknown = [kind or "(none)" for kind in entity_types(tags) if kind not in known]
    if unknown:
        warnings.warn(
            f"{sentences.source}: the model finds no entities of the types {', '.join(unknown)}. "
            f"Its types: {', '.join(kind or '(none)' for kind in known)}",
            stacklevel=2,
        )
    scheme = "iobes" if any(tag[:2] in ("E-", "S-") for tag in model.labels) else "bio"
    return entity_metrics(sentences.tags or [], model.predict_tags(sentences.words), scheme)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")

"""Evaluation of span tagging: whole spans, and characters."""

from typing import Any

from kbert.data.questions.question_examples import QuestionExamples
from kbert.metrics.answers import exact_and_overlap_f1

# Metrics by which epochs and biases are compared, the default first.
MONITORED = ("span_overlap_f1", "span_exact_f1")


def measure_spans(
    model: Any, examples: QuestionExamples, find_bias: bool = False
) -> dict[str, Any]:
    """Evaluates a `SpanTagger`: whole spans, and characters.

    Args:
        model: The model.
        examples: Questions; every distinct answer of a question counts as one to be found.
        find_bias: Whether to set the model's `outside_bias` to the best one for these questions.
    """
    true = [
        [(a.start, a.start + len(a.text)) for a in several] for several in examples.answers
    ]
    if find_bias:
        by_bias = model.spans_with_biases(examples.questions, examples.contexts)
        found = {bias: exact_and_overlap_f1(true, spans) for bias, spans in by_bias.items()}
        # Among several best, the one with the smallest absolute value.

        def rank(bias: float) -> tuple[float, ...]:
            return (*(found[bias][name] for name in MONITORED), -abs(bias))

        model.outside_bias = max(found, key=rank)
        return {**found[model.outside_bias], "outside_bias": model.outside_bias}
    rows = model.predict(examples)
    predicted = [
        [(int(row["starts"][i]), int(row["ends"][i])) for i in range(row["count"])] for row in rows
    ]
    return {**exact_and_overlap_f1(true, predicted), "outside_bias": model.outside_bias}

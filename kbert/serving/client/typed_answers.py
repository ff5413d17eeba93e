"""A server's answers as typed objects: one class a task."""

from typing import Any

from kbert.tasks.base.answers import Span, Spans
from kbert.tasks.classification.answers import Classification
from kbert.tasks.multiple_choice.answers import Choice
from kbert.tasks.pretraining.answers import Filling, Mask
from kbert.tasks.question_answering.answers import Answer
from kbert.tasks.regression.answers import Score
from kbert.tasks.translation.answers import Translation

AnyAnswer = (
    Classification | Score | Choice | Answer | Spans | Translation | Filling | dict[str, Any]
)
__all__ = [
    "Answer",
    "AnyAnswer",
    "Choice",
    "Classification",
    "Filling",
    "Mask",
    "Score",
    "Span",
    "Spans",
    "Translation",
]

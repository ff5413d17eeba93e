"""A server's answers as typed objects: one class a task."""

from typing import Any

from kbert.tasks.answers import Span, Spans
from kbert.tasks.captioning.task import Caption
from kbert.tasks.classification.task import Classification
from kbert.tasks.embedding.task import Embedding
from kbert.tasks.multi_label.task import LabelSet
from kbert.tasks.multiple_choice.task import Choice
from kbert.tasks.pretraining.task import Filling, Mask
from kbert.tasks.question_answering.task import Answer
from kbert.tasks.regression.task import Score
from kbert.tasks.translation.task import Translation

AnyAnswer = (
    Classification
    | LabelSet
    | Score
    | Choice
    | Embedding
    | Answer
    | Spans
    | Translation
    | Caption
    | Filling
    | dict[str, Any]
)
__all__ = ["Answer", "AnyAnswer", "Caption", "Choice", "Classification", "Embedding", "Filling"]
__all__ += ["LabelSet", "Mask", "Score", "Span", "Spans", "Translation"]

"""Options of `kbert train question-answering` alone."""

from dataclasses import dataclass

from kbert.options.configuration import Configuration
from kbert.options.kinds import flag, option, whole


@dataclass(frozen=True)
class QuestionOptions(Configuration):
    """Options of a model that answers questions."""

    max_answer_length: int | None = option(
        None, whole(1, optional=True), "Model", "Longest answer in tokens, by default 30."
    )
    all_occurrences: bool = option(
        False,
        flag(),
        "Data",
        "Of questions: an answer counts wherever its text stands, where its place was guessed.",
    )

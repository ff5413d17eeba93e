"""Options of question answering."""

from dataclasses import dataclass

from kbert.options.kinds import flag, option, whole
from kbert.tasks.base.options import WindowOptions


@dataclass(frozen=True)
class QuestionOptions(WindowOptions):
    """Options of questions about long texts."""

    max_question_length: int | None = option(
        None, whole(1, optional=True), "Model", "Longest question in tokens, by default 64."
    )
    other_windows: int | None = option(
        None,
        whole(0, optional=True),
        "Data",
        "Of questions: how many windows without the answer each question trains on, drawn by the "
        "seed; by default all.",
    )


@dataclass(frozen=True)
class QuestionAnsweringOptions(QuestionOptions):
    """Options of one span an answer."""

    max_answer_length: int | None = option(
        None, whole(1, optional=True), "Model", "Longest answer in tokens, by default 30."
    )
    all_occurrences: bool = option(
        False,
        flag(),
        "Data",
        "Of questions: an answer counts wherever its text stands, where its place was guessed.",
    )

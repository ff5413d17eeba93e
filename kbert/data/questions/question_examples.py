"""Questions about texts, the form of reading-comprehension examples that training takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kbert.data.tables.columns import Columns, check_different, shortened, without_surrogates


class Answer(NamedTuple):
    """An answer in its context.

    Attributes:
        text: the answer, never empty.
        start: its offset in the context, in code points.
    """

    text: str
    start: int


@dataclass(frozen=True)
class QuestionExamples(Columns):
    """Questions, each with a text that may answer it.

    Attributes:
        ids: the questions' ids, all different.
        questions: the questions.
        contexts: the text that each question is asked about.
        answers: the right answers of each question; none where the context does not answer it.
        titles: the article that the context comes from; "" where unknown.
        source: where the examples come from, for messages.
        paths: location of each question in its source, such as "data[3].paragraphs[2].qas[0]" or
            "line 7".
        labeled: whether the answers were read; False leaves all of `answers` empty.
    """

    ids: list[str]
    questions: list[str]
    contexts: list[str]
    answers: list[list[Answer]]
    titles: list[str]
    source: str
    paths: list[str]
    labeled: bool = True

    columns = ("ids", "questions", "contexts", "answers", "titles", "paths")

    def __post_init__(self) -> None:
        """Checks that all columns have one length, and that no id occurs twice."""
        super().__post_init__()
        check_different(self.source, self.ids, self.paths)

    @property
    def answer_texts(self) -> dict[str, list[str]]:
        """Returns {question id: texts of its answers}, as SQuAD's metrics take them."""
        return {id: [answer.text for answer in each] for id, each in zip(self.ids, self.answers)}


def required_answers(examples: QuestionExamples) -> list[list[Answer]]:
    """Returns the answers of questions; a ValueError if these were read without them."""
    if not examples.labeled:
        raise ValueError(
            f"{examples.source}: the questions must have answers. Received: questions that were "
            "read with labeled=False"
        )
    return examples.answers


def answers_of(
    value: Any, context: str, where: str, encoding_errors: str = "strict"
) -> list[Answer]:
    """Returns the answers that a JSON value holds, after a check.

    Args:
        value: a list of {"text": string, "answer_start": integer}, where "start" is read as
            "answer_start"; or {"text": [strings], "answer_start": [integers]}, as Hugging Face's
            datasets write it.
        context: the text that the answers are spans of.
        where: file and line or path, for messages.
        encoding_errors: "strict", or "replace" to put U+FFFD for each lone surrogate.

    Raises:
        ValueError: the value has another form, an answer is empty, or it begins outside of the
            context.
    """
    return [
        _answer(item, context, f"{where}, answers[{i}]", encoding_errors)
        for i, item in enumerate(_answer_objects(value, where))
    ]


def _answer_objects(value: Any, where: str) -> Sequence[Any]:
    if isinstance(value, Mapping):
        texts, starts = value.get("text"), value.get("answer_start", value.get("start"))
        if isinstance(texts, list) and isinstance(starts, list) and len(texts) == len(starts):
            return [{"text": text, "answer_start": start} for text, start in zip(texts, starts)]
        raise ValueError(
            f"{where}: `answers` must be a list of objects, or one object with the lists "
            f"`text` and `answer_start` of one length. Received: {shortened(value)}"
        )
    if not isinstance(value, list):
        raise ValueError(
            f"{where}: `answers` must be a list of objects with `text` and `answer_start`. "
            f"Received: {shortened(value)}"
        )
    return value


def _answer(item: Any, context: str, where: str, encoding_errors: str) -> Answer:
    if not isinstance(item, Mapping):
        raise ValueError(
            f"{where}: the answer must be an object with `text` and `answer_start`. Received: "
            f"{shortened(item)}"
        )
    text, start = item.get("text"), item.get("answer_start", item.get("start"))
    if not isinstance(text, str) or not text:
        raise ValueError(
            f"{where}: `text` must be a string that is not empty. Received: {shortened(text)}"
        )
    if isinstance(start, bool) or not isinstance(start, int):
        raise ValueError(
            f"{where}: `answer_start` must be an integer, counted in code points from the "
            f"beginning of the context. Received: {shortened(start)}"
        )
    if not 0 <= start < len(context):
        raise ValueError(
            f"{where}: `answer_start` must be at least 0 and below {len(context)}, the code points "
            f"of the context. Received: answer_start={start}"
        )
    return Answer(without_surrogates(text, f"{where}, `text`", encoding_errors), start)

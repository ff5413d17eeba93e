"""Questions about texts, the examples that reading comprehension trains on, and tables of them."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kbert.data.tables.columns import Columns, check_different, shortened, without_surrogates
from kbert.data.tables.table import Table, read_table


class Answer(NamedTuple):
    """An answer, never empty, and its offset in the context, in code points."""

    text: str
    start: int

    def is_in(self, context: str) -> bool:
        """Returns whether the answer stands at its offset, which may also be outside."""
        return self.start >= 0 and context.startswith(self.text, self.start)


@dataclass(frozen=True)
class QuestionExamples(Columns):
    """Questions, each with a text that may answer it."""

    ids: list[str]  # the questions' ids, all different
    questions: list[str]
    contexts: list[str]  # the text that each question is asked about
    # the right answers of each question; none where the context does not answer it
    answers: list[list[Answer]]
    titles: list[str]  # the article that the context comes from; "" where unknown
    source: str
    # location of each question in its source, such as "data[3].paragraphs[2].qas[0]" or "line 7"
    paths: list[str]
    labeled: bool = True  # whether the answers were read; False leaves all of `answers` empty

    columns = ("ids", "questions", "contexts", "answers", "titles", "paths")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_different(self.source, self.ids, self.paths)

    @property
    def answer_texts(self) -> dict[str, list[str]]:
        """{question id: texts of its answers}, as SQuAD's metrics take them."""
        return {id: [answer.text for answer in each] for id, each in zip(self.ids, self.answers)}


def required_answers(examples: QuestionExamples) -> list[list[Answer]]:
    """Returns the answers of questions; a ValueError if these were read without them."""
    if not examples.labeled:
        raise ValueError(
            f"{examples.source}: the questions must have answers. Received: questions that were "
            "read with labeled=False"
        )
    return examples.answers


def answers_of(value: Any, where: str) -> list[Answer]:
    """Returns the answers that a JSON value holds, after a check; a ValueError begins with `where`.

    `value` is a list of {"text": string, "answer_start": integer}, where "start" is read as
    "answer_start"; or {"text": [strings], "answer_start": [integers]}, as Hugging Face's datasets
    write it. An answer must not be empty; its offset may be wrong: see `align_answers`.
    """
    return [
        _answer(item, f"{where}, answers[{i}]")
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


def _answer(item: Any, where: str) -> Answer:
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
    return Answer(without_surrogates(text, f"{where}, `text`"), start)


_INTEGER = re.compile(r"\s*-?[0-9]{1,18}\s*")


def read_question_rows(
    path: str | os.PathLike[str],
    *,
    quoting: bool | str | None = None,
    labeled: bool = True,
) -> QuestionExamples:
    """Reads questions from a table with a header, a file of `read_table`.

    The columns are `question`, `context`, optionally `id` (the line numbers by default) and
    `title`, and the answers: `answers` in a form of `answers_of` (in CSV and TSV as JSON text), or
    one answer in `answer` and `answer_start` (or `start`), both empty where the context does not
    answer the question; `labeled=False` does not read them. A ValueError names file and line.
    """
    table = read_table(path, quoting=quoting)
    paths = [f"line {line}" for line in table.lines]
    titled = table.find("title") is not None
    return QuestionExamples(
        ids=_ids(table),
        questions=table.texts("question", strict=True),
        contexts=table.texts("context", strict=True),
        answers=_answers(table) if labeled else [[] for _ in paths],
        titles=table.texts("title", strict=True, missing="") if titled else [""] * len(paths),
        source=table.source,
        paths=paths,
        labeled=labeled,
    )


def _ids(table: Table) -> list[str]:
    if table.find("id"):
        return table.ids("id", strict=True)
    lines = table.lines
    # All rows of a JSON file may be on one line.
    numbers = lines if len(set(lines)) == len(lines) else range(1, len(lines) + 1)
    return [str(number) for number in numbers]


def _answers(table: Table) -> list[list[Answer]]:
    start_column = table.find("answer_start", "start")
    if table.find("answers"):
        values = _answer_lists(table)
    elif table.find("answer") and start_column is not None:
        pairs = zip(table.values("answer"), table.values(start_column))
        values = [_single_answer(table, row, *pair) for row, pair in enumerate(pairs)]
    else:
        raise ValueError(
            f"{table.source}: the questions must have a column `answers`, or columns `answer` and "
            f"`answer_start`. Received: {table.header}"
        )
    return [
        answers_of(value, f"{table.source}, line {line}")
        for value, line in zip(values, table.lines)
    ]


def _answer_lists(table: Table) -> list[Any]:
    values = table.values("answers")
    if isinstance(table.rows[0], dict):
        return values
    parsed = []
    for row, value in enumerate(values):
        try:
            parsed.append(json.loads(value))
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"{table.place(row, 'answers')}: the value must be a JSON list of objects with "
                f"`text` and `answer_start`. Received: {shortened(value)}"
            ) from error
    return parsed


def _single_answer(table: Table, row: int, answer: Any, start: Any) -> list[dict[str, Any]]:
    """Returns one answer, or none, in the form of `answers_of`."""
    if isinstance(start, str) and _INTEGER.fullmatch(start):
        start = int(start)
    if answer is None or answer == "":
        if start not in (None, "", -1):
            raise ValueError(
                f"{table.place(row, 'answer')}: the answer must be there where its start is. "
                f"Received: {shortened(answer)}, which starts at {start!r}"
            )
        return []
    return [{"text": answer, "answer_start": start}]

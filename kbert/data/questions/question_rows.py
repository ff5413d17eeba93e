"""Questions in tables: JSON Lines, JSON, CSV and TSV, one question a row."""

import json
import os
import re
from typing import Any

from kbert.data.questions.question_examples import Answer, QuestionExamples, answers_of
from kbert.data.tables.columns import shortened
from kbert.data.tables.table import Table, read_table

_INTEGER = re.compile(r"\s*-?[0-9]{1,18}\s*")


def read_question_rows(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    quoting: bool | str | None = None,
    labeled: bool = True,
    encoding_errors: str = "strict",
) -> QuestionExamples:
    """Reads questions from a table with a header.

    The columns are `question`, `context`, optionally `id` (the line numbers by default) and
    `title`, and the answers: `answers` in a form of `answers_of` (in CSV and TSV as JSON text), or
    one answer in `answer` and `answer_start` (or `start`), both empty where the context does not
    answer the question.

    Args:
        path: JSON Lines, JSON, CSV or TSV; UTF-8, plain or gzipped.
        format: "tsv", "csv", "jsonl" or "json"; None takes it from the name.
        quoting: whether fields may be quoted; None and "auto": see `read_table`.
        labeled: whether answers are required; False does not read them.
        encoding_errors: "strict", or "replace" to read U+FFFD for bytes that are not UTF-8 and for
            escapes that are half of a surrogate pair.

    Returns:
        `QuestionExamples` in the order of the file.

    Raises:
        ValueError: the file, a row or an answer is wrong; the message names file and line.
        FileNotFoundError: there is no such file.
    """
    table = read_table(path, format=format, quoting=quoting, encoding_errors=encoding_errors)
    paths = [f"line {line}" for line in table.lines]
    contexts = table.texts("context", encoding_errors)
    titles = [""] * len(paths)
    if table.find("title"):
        titles = table.texts("title", encoding_errors, missing="")
    return QuestionExamples(
        ids=_ids(table, encoding_errors),
        questions=table.texts("question", encoding_errors),
        contexts=contexts,
        answers=_answers(table, contexts, encoding_errors) if labeled else [[] for _ in paths],
        titles=titles,
        source=table.source,
        paths=paths,
        labeled=labeled,
    )


def _ids(table: Table, encoding_errors: str) -> list[str]:
    if not table.find("id"):
        # All rows of a JSON file may be on one line.
        lines = table.lines
        numbers = lines if len(set(lines)) == len(lines) else range(1, len(lines) + 1)
        return [str(number) for number in numbers]
    return table.ids("id", encoding_errors)


def _answers(table: Table, contexts: list[str], encoding_errors: str) -> list[list[Answer]]:
    start_column = table.find("answer_start", "start")
    if table.find("answers"):
        values = _answer_lists(table)
    elif table.find("answer") and start_column is not None:
        starts = table.values(start_column)
        values = [
            _single_answer(table, row, answer, start)
            for row, (answer, start) in enumerate(zip(table.values("answer"), starts))
        ]
    else:
        raise ValueError(
            f"{table.source}: the questions must have a column `answers`, or columns `answer` and "
            f"`answer_start`. Received: {table.header}"
        )
    return [
        answers_of(value, context, f"{table.source}, line {line}", encoding_errors)
        for value, context, line in zip(values, contexts, table.lines)
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

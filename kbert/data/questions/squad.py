"""Questions and predictions in the layout of SQuAD 1.1 and 2.0, and questions of any file.

Sources: Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine Comprehension of Text" (2016);
Rajpurkar et al., "Know What You Don't Know: Unanswerable Questions for SQuAD" (2018); the files at
rajpurkar.github.io/SQuAD-explorer.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kbert.data.questions.question_examples import (
    Answer,
    QuestionExamples,
    answers_of,
    read_question_rows,
)
from kbert.data.tables.columns import read_text, shortened, without_surrogates
from kbert.data.tables.rows import json_value
from kbert.storage.files import write_atomically

_KINDS: dict[type, str] = {str: "a string", list: "a list", bool: "true or false"}


def read_squad(path: str | os.PathLike[str], *, labeled: bool = True) -> QuestionExamples:
    """Reads a file in the official layout of SQuAD, plain or gzipped, as questions in its order.

    It is {"data": [{"title", "paragraphs": [{"context", "qas": [{"id", "question", "answers":
    [{"text", "answer_start"}], "is_impossible"}]}]}]}, where `title` and `is_impossible` may be
    absent.

    A question is without answer where `is_impossible` is true (its `plausible_answers` are not
    read), or where `answers` is an empty list and `is_impossible` is absent. An answer that is not
    at its `answer_start` is read all the same: see `align_answers`. `labeled=False` does not read
    answers. A ValueError names the file and the path in it.
    """
    source = os.fspath(path)
    return _examples(source, _parsed(source, path), labeled)


def read_questions(path: str | os.PathLike[str], *, labeled: bool = True) -> QuestionExamples:
    """Reads questions from a file for `read_squad` or `read_question_rows`, whose arguments these
    are.

    JSON with a list `data` is SQuAD; otherwise the ending of the name decides.
    """
    source = os.fspath(path)
    if source.lower().removesuffix(".gz").endswith(".json"):
        value = _parsed(source, path)
        if isinstance(value, dict) and isinstance(value.get("data"), list):
            return _examples(source, value, labeled)
    return read_question_rows(path, labeled=labeled)


def write_predictions(path: str | os.PathLike[str], predictions: Mapping[str, str]) -> Path:
    """Writes predictions for the official evaluation atomically; an existing file is replaced.

    `predictions` is {question id: answer}; "" where the context does not answer the question.
    Missing parents of the file are created. Returns its path.
    """
    if not predictions:
        raise ValueError("`predictions` must hold an answer. Received: none")
    for id, answer in predictions.items():
        if not isinstance(id, str) or not isinstance(answer, str):
            raise ValueError(
                "`predictions` must be {id: answer}, both of them strings. Received: "
                f"{id!r}: {answer!r}"
            )
    # ASCII only: an answer cut out of broken text may hold lone surrogates, which UTF-8 cannot.
    write_atomically(path, json.dumps(dict(predictions), indent=1) + "\n")
    return Path(path)


def _parsed(source: str, path: str | os.PathLike[str]) -> Any:
    return json_value(source, read_text(path), "questions")


def _examples(source: str, value: Any, labeled: bool) -> QuestionExamples:
    ids, texts, contexts, answers, titles, paths = [], [], [], [], [], []
    for path, title, context, entry in _questions(source, value):
        where = f"{source}, {path}"
        ids.append(_id(entry, where))
        texts.append(_text(entry, "question", where))
        contexts.append(context)
        answers.append(_answers(entry, context, where) if labeled else [])
        titles.append(title)
        paths.append(path)
    if not ids:
        raise ValueError(f"{source}: the file must hold questions. Received: none under `data`")
    return QuestionExamples(ids, texts, contexts, answers, titles, source, paths, labeled)


def _questions(source: str, value: Any) -> Iterator[tuple[str, str, str, Any]]:
    """Yields location, title, context and entry of each question."""
    for a, article in enumerate(_member(value, "data", list, source)):
        article_path = f"data[{a}]"
        where = f"{source}, {article_path}"
        paragraphs = _member(article, "paragraphs", list, where)
        titled = article.get("title") is not None
        title = _text(article, "title", where) if titled else ""
        for p, paragraph in enumerate(paragraphs):
            path = f"{article_path}.paragraphs[{p}]"
            entries = _member(paragraph, "qas", list, f"{source}, {path}")
            context = _text(paragraph, "context", f"{source}, {path}")
            for q, entry in enumerate(entries):
                yield f"{path}.qas[{q}]", title, context, entry


def _member(owner: Any, key: str, kind: type, where: str) -> Any:
    """Returns a value of a JSON object, after a check of both."""
    if not isinstance(owner, dict):
        raise ValueError(
            f"{where}: the value must be an object with `{key}`. Received: {shortened(owner)}"
        )
    value = owner.get(key)
    if not isinstance(value, kind):
        raise ValueError(f"{where}: `{key}` must be {_KINDS[kind]}. Received: {shortened(value)}")
    return value


def _text(owner: Any, key: str, where: str) -> str:
    text = _member(owner, key, str, where)
    return without_surrogates(text, f"{where}, `{key}`")


def _id(entry: Any, where: str) -> str:
    value = entry.get("id") if isinstance(entry, dict) else None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _text(entry, "id", where)


def _answers(entry: Any, context: str, where: str) -> list[Answer]:
    told = "is_impossible" in entry
    impossible = told and _member(entry, "is_impossible", bool, where)
    value = entry.get("answers")
    if impossible and value in (None, []):
        return []
    answers = answers_of(value, where)
    if told and bool(answers) == impossible:
        expected = "be empty" if impossible else "hold an answer"
        raise ValueError(
            f"{where}: `answers` must {expected} where `is_impossible` is "
            f"{'true' if impossible else 'false'}. Received: {shortened(value)}"
        )
    return answers

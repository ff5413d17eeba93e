"""Labelled texts and text pairs, the form of examples that training and prediction take."""

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kbert.data.classification.labels import Labels, read_labels
from kbert.data.tables.columns import Columns
from kbert.data.tables.table import Table, first_rows, read_table

# Columns tried in this order when none are given; the first pair or single column present wins.
_TEXT_COLUMNS: tuple[tuple[str, str | None], ...] = (
    ("text_a", "text_b"),
    ("sentence1", "sentence2"),
    ("question1", "question2"),
    ("premise", "hypothesis"),
    ("question", "sentence"),
    ("text1", "text2"),
    ("text_a", None),
    ("text", None),
    ("sentence", None),
)
_TEXTS = ("text_a", tuple(dict.fromkeys(first for first, _ in _TEXT_COLUMNS)))
_LABEL_COLUMNS = ("label", "gold_label", "labels", "category", "class")
_SCORE_COLUMNS = ("score", "label")
_ID_COLUMNS = ("id", "index", "idx", "guid")


@dataclass(frozen=True)
class TextExamples(Columns):
    """Texts or text pairs with their labels."""

    text_a: list[str]  # the texts, or the first of each pair
    text_b: list[str] | None  # the second of each pair; None for single texts
    # class names; or floats (regression); or soft labels, one {class name: probability} or one list
    # of probabilities an example; or lists of names, see `label_sets`; None for unlabelled examples
    labels: Labels | None
    ids: list[str] | None
    source: str
    lines: list[int]

    columns = ("text_a", "text_b", "labels", "ids", "lines")


def usual_columns(count: int) -> list[list[str]]:
    """Returns the text columns that are tried where none are given, in order.

    `count` is 1 for single texts, 2 for pairs.
    """
    named = [[name for name in names if name is not None] for names in _TEXT_COLUMNS]
    return [names for names in named if len(names) == count]


def read_text_examples(
    path: str | os.PathLike[str],
    text_a: str | int | None = None,
    text_b: str | int | None = None,
    label: str | int | Sequence[str | int] | Mapping[str, str | int] | None = None,
    id: str | int | None = None,
    *,
    quoting: bool | str | None = None,
    regression: bool = False,
    labeled: bool | None = None,
    malformed_rows: str = "error",
) -> TextExamples:
    """Reads texts or text pairs from a file of `read_table`, whose arguments are not listed here.

    An empty text stays an empty string. A ValueError names file, line and column.

    Args:
        text_a: column of the text, by name, or by 0-based index where no line names the columns.
            None finds `text_a`, `text`, `sentence`, or a pair such as `sentence1`, `sentence2` or
            `premise`, `hypothesis`.
        text_b: column of the second text. None reads none where `text_a` is given.
        label: column of the labels; None finds `label`, `gold_label`, `category` or, for
            regression, `score`. Soft labels: the columns of the probabilities as a list or as
            {class name: column}; a JSON label may itself be {class name: probability}.
        id: column of the ids; None finds `id`, `index`, `idx` or `guid`.
        labeled: True: labels are required; False: they are not read; None: read if present.
    """
    by_index = any(isinstance(column, int) for column in (text_a, text_b, label, id))
    table = read_table(path, header=not by_index, quoting=quoting, malformed_rows=malformed_rows)
    label = label_column(table, regression, bool(labeled), text_a) if label is None else label
    text_a, text_b = text_columns(table, text_a, text_b, label)
    labels = None if labeled is False or label is None else read_labels(table, label, regression)
    if labeled and labels is None:
        raise no_labels(table, label)
    return text_examples(table, text_a, text_b, labels, id)


def text_examples(
    table: Table,
    text_a: str | int,
    text_b: str | int | None,
    labels: Labels | None,
    id: str | int | None = None,
) -> TextExamples:
    """Returns the examples of a table whose labels were read, and text columns found.

    Warns (`UserWarning`) about empty texts of labelled examples.
    """
    id = table.find(*_ID_COLUMNS) if id is None else id
    first = table.texts(text_a)
    second = None if text_b is None else table.texts(text_b)
    if labels is not None:
        _warn_of_empty(table, first, second)
    return TextExamples(
        text_a=first,
        text_b=second,
        labels=labels,
        ids=None if id is None else table.ids(id),
        source=table.source,
        lines=table.lines,
    )


def _warn_of_empty(table: Table, first: list[str], second: list[str] | None) -> None:
    # isspace() looks no further than the first letter.
    empty = {
        i for texts in (first, second or ()) for i, x in enumerate(texts) if not x or x.isspace()
    }
    if empty:
        warnings.warn(
            f"{table.source}: {len(empty)} of {len(first)} rows have an empty text, or one of "
            f"white space alone; the first is line {table.lines[min(empty)]}.",
            stacklevel=4,
        )


def check_text_columns(
    path: str | os.PathLike[str],
    text_a: str | int | None = None,
    text_b: str | int | None = None,
    label: str | int | None = None,
    *,
    regression: bool = False,
) -> None:
    """Checks the columns of labelled texts, where the first lines of their file show them.

    The arguments are those of `read_text_examples`.
    """
    by_index = any(isinstance(column, int) for column in (text_a, text_b, label))
    table = first_rows(path, header=not by_index)
    if table is None:
        return
    label = label_column(table, regression, True, text_a) if label is None else label
    for column in (*text_columns(table, text_a, text_b, label), label):
        if column is not None:
            table.index_of(column)


def text_columns(
    table: Table, text_a: str | int | None, text_b: str | int | None, label: Any = None
) -> tuple[str | int, str | int | None]:
    """Returns the columns of the texts: those given, or the usual ones that a table has.

    A ValueError if there are none, or if one column is given twice, `label` included, which may be
    several columns.
    """
    if text_a is None:
        usual = _usual_texts(table)
        if usual is None:
            raise _not_given(table, _TEXTS)
        text_a, text_b = usual[0], usual[1] if text_b is None else text_b
    several = label.values() if isinstance(label, Mapping) else label
    for one in [label] if label is None or isinstance(label, str | int) else several:
        given = {"text_a": text_a, "text_b": text_b, "label": one}
        check_distinct(table, {n: c for n, c in given.items() if c is not None})
    return text_a, text_b


def check_distinct(table: Table, columns: Mapping[str, str | int]) -> None:
    """Checks that no column of a table is given twice: name of the argument -> column."""
    first: dict[str | int, str] = {}
    for name, column in columns.items():
        if column in first:
            raise ValueError(
                f"{table.source}: `{first[column]}` and `{name}` must be different columns. "
                f"Received: {column!r} for both"
            )
        first[column] = name


def _usual_texts(table: Table) -> tuple[str, str | None] | None:
    known = table.columns or ()
    pairs = (one for one in _TEXT_COLUMNS if one[0] in known and one[1] in (None, *known))
    return next(pairs, None)


def label_column(
    table: Table, regression: bool, required: bool = False, text_a: str | int | None = None
) -> str | None:
    """Returns the usual column of labels, or of scores, that a table has.

    Where one is `required`, a ValueError if there is none; it speaks of the texts too, if their
    column `text_a` is not given and not found either.
    """
    names = _SCORE_COLUMNS if regression else _LABEL_COLUMNS
    found = table.find(*names)
    if found is None and required:
        lacks_texts = text_a is None and _usual_texts(table) is None
        raise _not_given(table, *([_TEXTS] if lacks_texts else []), ("label", names))
    return found


def _not_given(table: Table, *wanted: tuple[str, Sequence[str]]) -> ValueError:
    """Returns the error of columns, each with its usual names, that must be given."""
    told = (
        f"`{name}` must be given where no column is called {', '.join(usual)}, as by "
        f"--{name.replace('_', '-')} COLUMN"
        for name, usual in wanted
    )
    return ValueError(
        f"{table.source}, line 1: {'; '.join(told)} (the number of one, from 0, where line 1 is no "
        f"header). Received: {table.header}"
    )


def no_labels(table: Table, label: object) -> ValueError:
    """Returns the error of examples whose column of labels is empty."""
    return ValueError(
        f"{table.source}: the examples must have labels. Received: an empty column `{label}`"
    )

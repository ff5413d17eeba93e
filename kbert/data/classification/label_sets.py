"""Examples with any number of labels each: reading them, their names, and their targets.

Source of the forms: columns of 0 and 1, as in the Toxic Comment Classification Challenge (Kaggle
2018); labels in one column with a separator, as in GoEmotions (Demszky et al. 2020).
"""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from kbert.data.classification.labels import (
    check_labels,
    finite_number,
    is_missing,
    label_names,
    names_of_shares,
    required_labels,
)
from kbert.data.classification.text_pairs import (
    TextExamples,
    label_column,
    no_labels,
    text_columns,
    text_examples,
)
from kbert.data.tables.columns import shortened, without_surrogates
from kbert.data.tables.table import Table, first_rows, read_table

SEPARATOR = "|"
Column = str | int | Sequence[str | int] | None
# Several names, or {label: probability}, for each example.
LabelSets = list[list[str]] | list[dict[str, float]]
_SHARES = {"true": 1.0, "false": 0.0}


def read_label_set_examples(
    path: str | os.PathLike[str],
    text_a: str | int | None = None,
    text_b: str | int | None = None,
    label: Column = None,
    id: str | int | None = None,
    *,
    separator: str = SEPARATOR,
    labeled: bool | None = None,
) -> TextExamples:
    """Reads texts or text pairs with any number of labels each, none included.

    A ValueError names file, line and column.

    Args:
        path: a file of `read_table`.
        text_a: column of the text, by name or 0-based index; None finds it.
        text_b: column of the second text.
        label: column of the labels: names with a separator between, or in JSON a list of names or
            {name: number in [0, 1]}. Or several columns, a list or their names with commas between,
            of 0 and 1 or of numbers between: the columns' names are the labels ("toxic," is one
            such column). None finds `label`, `gold_label`, `labels`, `category` or `class`.
        id: column of the ids; None finds it.
        separator: text between two labels; spaces around a label do not count.
        labeled: True: labels are required; False: they are not read; None: read if present.
    """
    first = label if isinstance(label, (str, int)) else next(iter(label or ()), None)
    by_index = any(isinstance(column, int) for column in (text_a, text_b, first, id))
    table = read_table(path, header=not by_index)
    found = label_column(table, False, bool(labeled), text_a) if label is None else label
    columns = None if found is None else _columns(table, found)
    text_a, text_b = text_columns(table, text_a, text_b, columns)
    labels = None
    if labeled is not False and found is not None:
        labels = read_label_sets(table, found, separator)
    if labeled and labels is None:
        raise no_labels(table, found)
    return text_examples(table, text_a, text_b, labels, id)


def check_label_set_columns(
    path: str | os.PathLike[str],
    text_a: str | int | None = None,
    text_b: str | int | None = None,
    label: Column = None,
) -> None:
    """Checks the columns of `read_label_set_examples`, where a file's first lines show them."""
    by_index = any(isinstance(column, int) for column in (text_a, text_b, label))
    table = first_rows(path, header=not by_index)
    if table is None:
        return
    found = label_column(table, False, True, text_a) if label is None else label
    named = () if found is None else _columns(table, found)
    for column in (*text_columns(table, text_a, text_b, named), *named):
        if column is not None:
            table.index_of(column)


def read_label_sets(
    table: Table, label: str | int | Sequence[str | int], separator: str = SEPARATOR
) -> LabelSets | None:
    """Reads the labels of a table; see `read_label_set_examples`.

    None where the column is empty in every row. A ValueError, with the place, for a value of the
    wrong kind.
    """
    columns = _columns(table, label)
    if columns != [label]:
        matrix = [table.values(column) for column in columns]
        return [
            {str(name): _share(row[i], table, i, name) for name, row in zip(columns, matrix)}
            for i in range(len(table.rows))
        ]
    values = table.values(columns[0])
    if all(is_missing(value) for value in values):
        return None
    sets = [_set(value, table, i, label, separator) for i, value in enumerate(values)]
    if any(isinstance(one, dict) for one in sets):
        # Names alone are as certain as can be.
        return [one if isinstance(one, dict) else dict.fromkeys(one, 1.0) for one in sets]
    return sets


def label_set_names(examples: TextExamples) -> list[str]:
    """Returns the sorted labels of examples, with the warnings of `label_names`.

    A ValueError if there is none.
    """
    sets = required_labels(examples)
    if any(isinstance(one, dict) for one in sets):
        names = names_of_shares(examples)
    else:
        names = label_names(_FlatLabels(examples)) if any(sets) else []
    if not names:
        raise ValueError(
            f"{examples.source}: the training examples must have labels. Received: no label in "
            f"{len(examples)} examples"
        )
    return names


def check_label_sets(examples: TextExamples, names: Sequence[str]) -> None:
    """Checks that all labels of examples are those of a model; see `check_labels`."""
    check_labels(_FlatLabels(examples), names)


def label_set_targets(examples: TextExamples, names: Sequence[str]) -> np.ndarray:
    """Returns the labels as float32 (examples, labels) in [0, 1], in the order of `names`.

    A label that an example does not name is 0; the errors are those of `check_labels`.
    """
    check_label_sets(examples, names)
    column = {name: i for i, name in enumerate(names)}
    targets = np.zeros((len(examples), len(names)), "float32")
    for i, one in enumerate(required_labels(examples)):
        for name, share in (one if isinstance(one, dict) else dict.fromkeys(one, 1.0)).items():
            targets[i, column[name]] = share
    return targets


class _FlatLabels:
    """Each label of each example by itself, with the line of the example."""

    def __init__(self, examples: TextExamples) -> None:
        sets = required_labels(examples)
        self.source = examples.source
        self.labels = [name for one in sets for name in one]
        self.lines = [line for one, line in zip(sets, examples.lines) for _ in one]


def _columns(table: Table, label: str | int | Sequence[str | int]) -> list[str | int]:
    """Returns the columns of the labels: one, or several that a text names with commas between."""
    if isinstance(label, str) and "," in label and label not in (table.columns or ()):
        label = [name.strip() for name in label.split(",") if name.strip()]
    columns = [label] if isinstance(label, (str, int)) else list(label)
    if len(set(columns)) < len(columns):
        raise ValueError(f"`label` must be different columns. Received: {columns}")
    return columns


def _set(value: Any, table: Table, row: int, label: object, separator: str) -> Any:
    """Returns the distinct names of a value, or {name: probability}."""

    def valid(name: object) -> str:
        return without_surrogates(str(name), table.place(row, label))

    if isinstance(value, str):
        names = (name.strip() for name in valid(value).split(separator))
        return list(dict.fromkeys(name for name in names if name))
    if isinstance(value, dict):
        return {valid(name): _share(share, table, row, label) for name, share in value.items()}
    if isinstance(value, list) and all(_is_name(name) for name in value):
        return list(dict.fromkeys(valid(name) for name in value))
    raise ValueError(
        f"{table.place(row, label)}: the labels must be a list of names, or names with "
        f"{separator!r} between. Received: {shortened(value)}"
    )


def _is_name(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _share(value: Any, table: Table, row: int, column: object) -> float:
    """Returns whether a label is there, or its probability: 0, 1, true, false or between."""
    number = float(value) if isinstance(value, bool) else finite_number(value)
    number = _SHARES.get(str(value).lower()) if number is None else number
    if number is None or not 0 <= number <= 1:
        raise ValueError(
            f"{table.place(row, column)}: the label must be 0 or 1, or a number between. "
            f"Received: {shortened(value)}"
        )
    return number

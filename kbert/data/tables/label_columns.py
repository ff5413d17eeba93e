"""Reader of labels in a table's columns: class names, scores and probabilities."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from kbert.data.tables.table import Table

_SUM_TOLERANCE = 1e-3

Labels = list[str] | list[float] | list[dict[str, float]] | list[list[float]]


def read_labels(
    table: Table, label: str | int | Sequence[str | int] | Mapping[str, str | int], regression: bool
) -> Labels | None:
    """Reads the labels of a table.

    Args:
        table: the rows.
        label: the column of the labels; or for soft labels the columns of the probabilities, as a
            list (class names are the columns' names) or as {class name: column}.
        regression: whether the labels are numbers.

    Returns:
        One name, float, {class name: probability} or list of probabilities a row; None where the
        column is empty in every row.

    Raises:
        ValueError: no such column, a row without a label, or a label of the wrong kind.
    """
    if not isinstance(label, (str, int)):
        columns = label if isinstance(label, Mapping) else {str(name): name for name in label}
        return _soft_from_columns(table, columns)
    values = table.values(label)
    missing = [i for i, value in enumerate(values) if value is None or value == ""]
    if len(missing) == len(values):
        return None
    if missing:
        raise ValueError(
            f"{_place(table, missing[0], label)}: each row must have a label, or none may have. "
            f"Received: {len(missing)} of {len(values)} rows without one"
        )
    if regression:
        return [_score(value, table, i, label) for i, value in enumerate(values)]
    if isinstance(values[0], (dict, list)):
        return [_soft(value, values[0], table, i, label) for i, value in enumerate(values)]
    if isinstance(table.rows[0], list):
        return values
    return [_name(value, table, i, label) for i, value in enumerate(values)]


def _place(table: Table, row: int, label: object) -> str:
    return f"{table.source}, line {table.lines[row]}, column `{label}`"


def _number(value: object) -> float | None:
    """Returns the finite number that `value` stands for; None for bool and everything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _score(value: object, table: Table, row: int, label: str | int) -> float:
    number = _number(value)
    if number is None:
        raise ValueError(
            f"{_place(table, row, label)}: the label must be a finite number for regression. "
            f"Received: {value!r}"
        )
    return number


def _name(value: object, table: Table, row: int, label: str | int) -> str:
    """Returns a class name; JSON's number 1 becomes "1", as in a TSV file."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, int)):
        return str(value).lower() if isinstance(value, bool) else str(value)
    raise ValueError(
        f"{_place(table, row, label)}: the label must be a string or an integer, as in the other "
        f"rows. Received: {value!r}. For scores pass regression=True."
    )


def _soft(value: Any, first: Any, table: Table, row: int, label: object) -> Any:
    """Checks one {class name: probability} or list of probabilities, whichever the first row is."""
    if not isinstance(value, type(first)) or isinstance(value, list) and len(value) != len(first):
        raise ValueError(
            f"{_place(table, row, label)}: the label must be probabilities as in the first row. "
            f"Received: {value!r}"
        )
    numbers = [_number(x) for x in (value.values() if isinstance(value, dict) else value)]
    total = sum(number for number in numbers if number is not None)
    good = all(number is not None and number >= 0 for number in numbers)
    if not good or abs(total - 1.0) > _SUM_TOLERANCE:
        raise ValueError(
            f"{_place(table, row, label)}: probabilities must be at least 0 and sum to 1. "
            f"Received: {value!r}"
        )
    return dict(zip(value, numbers)) if isinstance(value, dict) else numbers


def _soft_from_columns(table: Table, columns: Mapping[str, str | int]) -> list[dict[str, float]]:
    if len(columns) < 2:
        raise ValueError(
            f"`label` must give two columns of probabilities or more. Received: label={columns}"
        )
    per_class = [table.values(column) for column in columns.values()]
    shown = ", ".join(str(column) for column in columns.values())
    names = list(columns)
    return [
        _soft(dict(zip(names, row)), {}, table, i, shown) for i, row in enumerate(zip(*per_class))
    ]

"""Labels of examples: reading them from columns, their names, and the checks before training."""

import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from kbert.data.tables.columns import without_surrogates
from kbert.data.tables.table import Table
from kbert.hints import nearest

_SUM_TOLERANCE = 1e-3
# Class names, scores, {class name: probability}, probabilities, or several names each.
Labels = list[str] | list[float] | list[dict[str, float]] | list[list[float]] | list[list[str]]


class _Labelled(Protocol):
    """Examples that may have labels, such as `TextExamples`."""

    @property
    def labels(self) -> Any: ...

    @property
    def source(self) -> str: ...

    @property
    def lines(self) -> list[int]: ...


def read_labels(
    table: Table, label: str | int | Sequence[str | int] | Mapping[str, str | int], regression: bool
) -> Labels | None:
    """Reads the labels of a table: one name, float, {class name: probability} or list of
    probabilities a row.

    None where the column is empty in every row; a ValueError, with the place, for a label that is
    missing or of the wrong kind. `label` is the column of the labels; or for soft labels the
    columns of the probabilities, as a list (class names are the columns' names) or as {class name:
    column}.
    """
    if not isinstance(label, (str, int)):
        columns = label if isinstance(label, Mapping) else {str(name): name for name in label}
        return _soft_from_columns(table, columns)
    values = table.values(label)
    missing = [i for i, value in enumerate(values) if is_missing(value)]
    if len(missing) == len(values):
        return None
    if missing:
        raise ValueError(
            f"{table.place(missing[0], label)}: each row must have a label, or none may have. "
            f"Received: {len(missing)} of {len(values)} rows without one"
        )
    if regression:
        return [_score(value, table, i, label) for i, value in enumerate(values)]
    if isinstance(values[0], (dict, list)):
        return [_soft(value, values[0], table, i, label) for i, value in enumerate(values)]
    if isinstance(table.rows[0], list):
        return values
    return [_name(value, table, i, label) for i, value in enumerate(values)]


def is_missing(value: object) -> bool:
    """Returns whether a row has no label: nothing, or nothing but white space."""
    return value is None or isinstance(value, str) and not value.strip()


def label_names(examples: _Labelled) -> list[str]:
    """Returns the sorted class names of examples, whose labels are names or {class name:
    probability}.

    Warns (`UserWarning`) about names that occur once: these are often misspelt, and one example
    teaches little and cannot be in both the training and the validation data. Warns too about names
    that differ only in case. A ValueError for names that differ only in blanks around them.
    """
    labels = required_labels(examples)
    if isinstance(labels[0], dict):
        return names_of_shares(examples)
    if not isinstance(labels[0], str):
        raise ValueError(
            f"{examples.source}: the labels must name classes. Received: labels such as "
            f"{labels[0]!r}"
        )
    first = {name: line for name, line in zip(reversed(labels), reversed(examples.lines))}
    single = sorted(name for name, count in Counter(labels).items() if count == 1)
    if single:
        listed = ", ".join(f"{name!r} (line {first[name]})" for name in single[:10])
        warnings.warn(
            f"{examples.source}: {len(single)} of {len(first)} labels occur only once: "
            f"{listed}{', ...' if len(single) > 10 else ''}. Are they misspelt?",
            stacklevel=2,
        )
    _warn_of_lookalikes(examples.source, first)
    return _distinct(examples.source, first)


def names_of_shares(examples: _Labelled) -> list[str]:
    """Returns the sorted names of examples whose labels are {name: probability}.

    A ValueError for names that differ only in blanks around them.
    """
    pairs = list(zip(required_labels(examples), examples.lines))
    first = {name: line for soft, line in reversed(pairs) for name in soft}
    return _distinct(examples.source, first)


def _distinct(source: str, first: dict[str, int]) -> list[str]:
    """Returns the sorted names, given with their first lines."""
    names = sorted(first)
    known: dict[str, str] = {}
    for name in names:
        other = known.setdefault(name.strip(), name)
        if other != name:
            raise ValueError(
                f"{source}: labels must differ in more than the blanks around them. Received: "
                f"{other!r} (line {first[other]}) and {name!r} (line {first[name]})"
            )
    return names


def check_labels(examples: _Labelled, names: Sequence[str]) -> None:
    """Checks that every label of examples, such as validation data, is a class of the model.

    A ValueError names the file, the line and the nearest known name.
    """
    known = set(names)
    for label, line in zip(required_labels(examples), examples.lines):
        if isinstance(label, list):
            if len(label) != len(names):
                raise ValueError(
                    f"{examples.source}, line {line}: the label must hold {len(names)} "
                    f"probabilities, one a class. Received: {len(label)}"
                )
            continue
        for name in label if isinstance(label, dict) else (label,):
            if name not in known:
                listed = ", ".join(f"`{x}`" for x in list(names)[:20])
                raise ValueError(
                    f"{examples.source}, line {line}: the label must be one of {listed}"
                    f"{', ...' if len(names) > 20 else ''}. Received: {name!r}."
                    f"{nearest(str(name), names)}"
                )


def required_labels(examples: _Labelled) -> Any:
    """Returns the labels of examples, and raises a ValueError if there are none."""
    if examples.labels is None:
        raise ValueError(
            f"{examples.source}: the examples must have labels. Received: none (no label column, "
            "or one that is empty in every row)"
        )
    return examples.labels


def label_probabilities(examples: _Labelled, names: Sequence[str]) -> np.ndarray:
    """Returns the labels as float32 probabilities, shape (examples, classes).

    Hard labels become one-hot rows. Classes that a soft label does not name get 0. The columns are
    in the order of `names`; the errors are those of `check_labels`.
    """
    check_labels(examples, names)
    labels = required_labels(examples)
    if isinstance(labels[0], list):
        return np.asarray(labels, dtype="float32")
    column = {name: i for i, name in enumerate(names)}
    matrix = np.zeros((len(labels), len(names)), dtype="float32")
    for i, label in enumerate(labels):
        for name, probability in (label if isinstance(label, dict) else {label: 1.0}).items():
            matrix[i, column[name]] = probability
    return matrix


def _warn_of_lookalikes(source: str, first: dict[str, int]) -> None:
    groups: dict[str, list[str]] = {}
    for name in sorted(first):
        groups.setdefault(name.casefold(), []).append(name)
    alike = [names for names in groups.values() if len(names) > 1]
    if alike:
        listed = "; ".join(
            " and ".join(f"{name!r} (line {first[name]})" for name in names) for names in alike
        )
        warnings.warn(
            f"{source}: labels that differ only in case are different classes: {listed}.",
            stacklevel=3,
        )


def finite_number(value: object) -> float | None:
    """Returns the finite number that `value` stands for; None for bool and everything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _score(value: object, table: Table, row: int, label: str | int) -> float:
    number = finite_number(value)
    if number is None:
        raise ValueError(
            f"{table.place(row, label)}: the label must be a finite number for regression. "
            f"Received: {value!r}"
        )
    return number


def _name(value: object, table: Table, row: int, label: str | int) -> str:
    """Returns a class name; JSON's number 1 becomes "1", as in a TSV file."""
    if isinstance(value, str):
        return without_surrogates(value, table.place(row, label))
    if isinstance(value, (bool, int)):
        return str(value).lower() if isinstance(value, bool) else str(value)
    raise ValueError(
        f"{table.place(row, label)}: the label must be a string or an integer, as in the other "
        f"rows. Received: {value!r}. For scores: `kbert train regression`, or regression=True."
    )


def _soft(value: Any, first: Any, table: Table, row: int, label: object) -> Any:
    """Checks one {class name: probability} or list of probabilities, whichever the first row is."""
    if not isinstance(value, type(first)) or isinstance(value, list) and len(value) != len(first):
        raise ValueError(
            f"{table.place(row, label)}: the label must be probabilities as in the first row. "
            f"Received: {value!r}"
        )
    numbers = [finite_number(x) for x in (value.values() if isinstance(value, dict) else value)]
    total = sum(number for number in numbers if number is not None)
    good = all(number is not None and number >= 0 for number in numbers)
    if not good or abs(total - 1.0) > _SUM_TOLERANCE:
        raise ValueError(
            f"{table.place(row, label)}: probabilities must be at least 0 and sum to 1. "
            f"Received: {value!r}"
        )
    if isinstance(value, list):
        return numbers
    names = (without_surrogates(name, table.place(row, label)) for name in value)
    return dict(zip(names, numbers))


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

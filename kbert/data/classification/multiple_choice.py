"""Multiple-choice examples: a context and the endings to choose from.

Source of the CSV layout: Zellers et al., "SWAG: A Large-Scale Adversarial Dataset for Grounded
Commonsense Inference" (2018): columns `sent1`, `sent2` (the beginning of the second sentence),
`ending0` to `ending3` and, outside the test file, `label`. Each choice is `sent2` and an ending, as
in the BERT paper's section 4.4.
"""

import os
from dataclasses import dataclass

from kbert.data.tables.columns import Columns
from kbert.data.tables.table import Table, first_rows, read_table

_ENDINGS = ("ending0", "ending1", "ending2", "ending3")
_ID_COLUMNS = ("id", "index", "idx", "")


@dataclass(frozen=True)
class ChoiceExamples(Columns):
    """Contexts with choices."""

    contexts: list[str]  # the texts to be continued
    # the possible continuations of each context, the same number each, at least two
    choices: list[list[str]]
    labels: list[int] | None  # 0-based index of the right choice; None for unlabelled examples
    ids: list[str] | None
    source: str
    lines: list[int]

    columns = ("contexts", "choices", "labels", "ids", "lines")

    @property
    def num_choices(self) -> int:
        """The number of choices of each example."""
        return len(self.choices[0])


def read_choice_examples(
    path: str | os.PathLike[str], *, labeled: bool | None = None
) -> ChoiceExamples:
    """Reads multiple-choice examples from a file of `read_table`.

    It has SWAG's columns, as CSV, TSV or JSON Lines, or is JSON Lines with `context` (string),
    `choices` (list of strings), `label` (0-based index) and optionally `id`. Labels are required
    where `labeled` is True, not read where it is False, and read if present where it is None. A
    ValueError names file, line and column.
    """
    table = read_table(path)
    if _has_choices(table):
        contexts, choices = table.texts("context"), _choices(table)
    else:
        contexts = table.texts("sent1")
        beginnings = table.texts("sent2")
        endings = zip(*(table.texts(column) for column in _ENDINGS))
        choices = [
            [f"{beginning} {ending}".strip() for ending in row]
            for beginning, row in zip(beginnings, endings)
        ]
    labels = None
    if labeled is not False and table.find("label"):
        labels = _labels(table, len(choices[0]))
    if labeled and labels is None:
        raise ValueError(
            f"{table.source}: the examples must have labels. Received: {table.header}, no label in "
            "any row"
        )
    id_column = table.find(*_ID_COLUMNS)
    ids = None if id_column is None else table.ids(id_column)
    return ChoiceExamples(contexts, choices, labels, ids, table.source, table.lines)


def check_choice_columns(path: str | os.PathLike[str]) -> None:
    """Checks the columns of labelled choices, where the first lines of their file show them."""
    table = first_rows(path)
    if table is not None:
        texts = ("context", "choices") if _has_choices(table) else ("sent1", "sent2", *_ENDINGS)
        for column in (*texts, "label"):
            table.index_of(column)


def _has_choices(table: Table) -> bool:
    """Returns whether rows have a list of choices, and not SWAG's columns."""
    return isinstance(table.rows[0], dict) and "sent1" not in table.rows[0]


def _choices(table: Table) -> list[list[str]]:
    rows = table.values("choices")
    for i, row in enumerate(rows):
        good = isinstance(row, list) and all(isinstance(choice, str) for choice in row)
        if not good or len(row) < 2:
            raise ValueError(
                f"{table.place(i, 'choices')}: the value must be a list of two strings or more. "
                f"Received: {row!r}"
            )
        if len(row) != len(rows[0]):
            raise ValueError(
                f"{table.place(i, 'choices')}: each example must have {len(rows[0])} choices, as "
                f"the first has. Received: {len(row)}"
            )
    return rows


def _labels(table: Table, num_choices: int) -> list[int] | None:
    values = table.values("label")
    if all(value is None or value == "" for value in values):
        return None
    labels = []
    for i, value in enumerate(values):
        text = "" if isinstance(value, bool) else str(value)
        if not text.isdecimal() or int(text) >= num_choices:
            raise ValueError(
                f"{table.place(i, 'label')}: the label must be the index of a choice, "
                f"0..{num_choices - 1}. Received: {value!r}"
            )
        labels.append(int(text))
    return labels

"""Texts that belong together, with scores or without: examples to learn sentence embeddings from.

Source of the layouts: STS-B of GLUE (`sentence1`, `sentence2`, `score`), and the pairs and triplets
of sentence-transformers (`anchor`, `positive`, `negative`).
"""

import os
from dataclasses import dataclass

import numpy as np

from kbert.data.classification.labels import read_labels
from kbert.data.classification.text_pairs import check_distinct, usual_columns
from kbert.data.tables.columns import Columns
from kbert.data.tables.table import Table, first_rows, read_table

_PAIRS = (("anchor", "positive"), ("query", "positive"), *map(tuple, usual_columns(2)))
_NEGATIVES = ("negative", "hard_negative")
_SCORES = ("score", "similarity_score", "label")
_ID_COLUMNS = ("id", "index", "idx", "guid")


@dataclass(frozen=True)
class TupleExamples(Columns):
    """Pairs of texts, with a third text that does not fit the first, or with scores."""

    text_a: list[str]  # the anchors
    text_b: list[str]  # the texts that fit them, or that were compared with them
    negatives: list[str] | None  # texts that do not fit the anchors
    labels: list[float] | None  # how alike the texts are, the more the higher
    ids: list[str] | None
    source: str
    lines: list[int]

    columns = ("text_a", "text_b", "negatives", "labels", "ids", "lines")

    @property
    def texts(self) -> tuple[list[str], ...]:
        """The two or three columns of texts."""
        more = () if self.negatives is None else (self.negatives,)
        return (self.text_a, self.text_b, *more)


def tuple_columns(count: int) -> list[list[str]]:
    """Returns the text columns that are tried where none are given, in order, for `count` texts."""
    return [list(pair) for pair in _PAIRS] if count == 2 else []


def read_tuple_examples(
    path: str | os.PathLike[str],
    text_a: str | int | None = None,
    text_b: str | int | None = None,
    label: str | int | None = None,
) -> TupleExamples:
    """Reads pairs or triplets of texts from a file of `read_table`.

    Columns are given by name or 0-based index; None finds those of the text by the names of a pair,
    such as `anchor` and `positive` or `sentence1` and `sentence2`, and that of the scores, if there
    is one, by the names `score`, `similarity_score` and `label`. A column `negative` has the third
    texts. A ValueError names file, line and column.
    """
    by_index = any(isinstance(column, int) for column in (text_a, text_b, label))
    table = read_table(path, header=not by_index)
    first, second = _text_columns(table, text_a, text_b)
    third = None if by_index else table.find(*_NEGATIVES)
    label = _score_column(table, third) if label is None else label
    scores = None if label is None else read_labels(table, label, True)
    if third is not None and scores is not None:
        raise ValueError(
            f"{table.source}, line 1: there must be scores or third texts, not both. Received: "
            f"{table.header}"
        )
    id = table.find(*_ID_COLUMNS)
    return TupleExamples(
        text_a=table.texts(first),
        text_b=table.texts(second),
        negatives=None if third is None else table.texts(third),
        labels=None if scores is None else np.asarray(scores, float).tolist(),
        ids=None if id is None else table.ids(id),
        source=table.source,
        lines=table.lines,
    )


def check_tuple_columns(
    path: str | os.PathLike[str],
    text_a: str | int | None = None,
    text_b: str | int | None = None,
    label: str | int | None = None,
) -> None:
    """Checks the columns of pairs or triplets, where the first lines of their file show them."""
    by_index = any(isinstance(column, int) for column in (text_a, text_b, label))
    table = first_rows(path, header=not by_index)
    if table is not None:
        for column in (*_text_columns(table, text_a, text_b), label):
            if column is not None:
                table.index_of(column)


def _text_columns(
    table: Table, text_a: str | int | None, text_b: str | int | None
) -> tuple[str | int, str | int]:
    if text_a is not None and text_b is not None:
        check_distinct(table, {"text_a": text_a, "text_b": text_b})
        return text_a, text_b
    if text_a is not None or text_b is not None:
        raise ValueError(
            "`text_a` and `text_b` must be given together for pairs of texts. Received: "
            f"text_a={text_a!r}, text_b={text_b!r}"
        )
    known = table.columns or ()
    for first, second in _PAIRS:
        if first in known and second in known:
            return first, second
    names = ", ".join(f"{first} and {second}" for first, second in _PAIRS)
    raise ValueError(
        f"{table.source}, line 1: `text_a` and `text_b` must be given where no columns are called "
        f"{names}. Received: {table.header}"
    )


def _score_column(table: Table, third: str | None) -> str | None:
    # Of triplets a label would be that of the second text.
    return table.find(*_SCORES) if third is None else table.find(_SCORES[0])

"""The columns of a table from its first lines, so that a wrong one is told before all is read."""

import csv
import io
import os
import warnings
import zlib
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from kbert.data.tables.delimited_rows import plain_rows
from kbert.data.tables.json_rows import json_rows
from kbert.data.tables.table import Table, format_of, read_table
from kbert.data.tables.text_files import open_text

# Smaller files are read whole; a longer first line tells nothing.
_BYTES = 1 << 17


def check_columns(
    path: str | os.PathLike[str], columns: Sequence[str | int], *, header: bool = True
) -> None:
    """Checks that a table has some columns, where its first lines tell.

    Args:
        path: As of `read_table`.
        columns: Names, or 0-based indices.
        header: As of `read_table`.

    Raises:
        ValueError: There is no such column, or the first lines are no table.
    """
    table = first_rows(path, header=header)
    if table is not None:
        for column in columns:
            table.index_of(column)


def first_rows(path: str | os.PathLike[str], *, header: bool = True) -> Table | None:
    """Reads the first rows of a table, one at least.

    Args:
        path: As of `read_table`.
        header: As of `read_table`.

    Returns:
        The table; None where the first lines do not tell, and for a pipe, which is read but once.

    Raises:
        ValueError: The file is no table, as far as its first lines tell.
    """
    source = os.fspath(path)
    kind = format_of(source)
    if not Path(path).is_file():
        return None
    if Path(path).stat().st_size <= _BYTES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # who reads it in earnest warns
            return read_table(path, header=header)
    lines = _first_lines(path)
    if not lines or kind == "json":
        return None
    if kind == "jsonl":
        rows, numbers = json_rows(source, lines[: lines.index("\n")], one_a_line=True)
        return Table(source, tuple(rows[0]), rows, numbers)
    fields = _csv_rows(lines) if kind == "csv" else plain_rows(lines, "\t")[0][:2]
    if len(fields) < 2:
        return None
    names = tuple(fields.pop(0)) if header else None
    return Table(source, names, fields[:1], [2 if header else 1])


def _first_lines(path: str | os.PathLike[str]) -> str:
    """The first whole lines, without blank ones before them."""
    try:
        with open_text(path) as file:
            content = file.read(_BYTES).decode("utf-8-sig", errors="replace")
    except (OSError, EOFError, zlib.error):
        return ""  # who reads it in earnest tells
    return str(content[: content.rfind("\n") + 1].lstrip("\r\n"))


def _csv_rows(lines: str) -> list[list[str]]:
    reader = csv.reader(io.StringIO(lines, newline=""), strict=True)
    try:
        return list(islice(filter(None, reader), 2))
    except csv.Error:
        return []  # a field that is cut off here, perhaps

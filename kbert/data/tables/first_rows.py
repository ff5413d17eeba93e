"""The columns of a table from its first lines, to report a wrong one before reading the whole."""

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

# Smaller files are read whole; of a longer first line nothing is known.
_BYTES = 1 << 17


def check_columns(
    path: str | os.PathLike[str], columns: Sequence[str | int], *, header: bool = True
) -> None:
    """Checks that a table has some columns, where its first lines show them.

    Args:
        path: a TSV, CSV, JSON Lines or JSON file, or one of these gzipped.
        columns: names, or 0-based indices.
        header: whether the first line of a TSV or CSV file names the columns.

    Raises:
        ValueError: there is no such column, or the first lines are not a table.
    """
    table = first_rows(path, header=header)
    if table is not None:
        for column in columns:
            table.index_of(column)


def first_rows(path: str | os.PathLike[str], *, header: bool = True) -> Table | None:
    """Reads the first rows of a table, one at least.

    Args:
        path: a TSV, CSV, JSON Lines or JSON file, or one of these gzipped.
        header: whether the first line of a TSV or CSV file names the columns.

    Returns:
        The table; None where the first lines hold no whole row, and for a pipe, which can be read
        only once.

    Raises:
        ValueError: the first lines are not a table.
    """
    source = os.fspath(path)
    kind = format_of(source)
    if not Path(path).is_file():
        return None
    if Path(path).stat().st_size <= _BYTES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the reader of the whole file warns
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
    """Reads the first whole lines, without blank ones before them."""
    try:
        with open_text(path) as file:
            content = file.read(_BYTES).decode("utf-8-sig", errors="replace")
    except (OSError, EOFError, zlib.error):
        return ""  # the reader of the whole file reports it
    return str(content[: content.rfind("\n") + 1].lstrip("\r\n"))


def _csv_rows(lines: str) -> list[list[str]]:
    reader = csv.reader(io.StringIO(lines, newline=""), strict=True)
    try:
        return list(islice(filter(None, reader), 2))
    except csv.Error:
        return []  # possibly a field that is cut off here

"""Tables of text on disk: TSV, CSV, JSON Lines and JSON, plain or gzipped, with line numbers."""

import os
import warnings
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

from kbert.data.tables.columns import open_text, shortened, text_lines, without_surrogates
from kbert.data.tables.rows import (
    SUFFIXES,
    check_width,
    checked_header,
    format_by_name,
    looks_quoted,
    text_rows,
)
from kbert.hints import nearest

FORMATS = ("tsv", "csv", "jsonl", "json")
# Smaller files are read whole to see their first rows; of a longer first line nothing is known.
_FIRST_BYTES = 1 << 17


@dataclass(frozen=True)
class Table:
    """Rows of a file."""

    source: str
    columns: tuple[str, ...] | None  # names of the columns; None for a file without a header
    rows: Sequence[Any]  # one list of fields (TSV, CSV) or one dict (JSON) a row; never empty
    lines: list[int]  # 1-based line where each row starts

    @property
    def header(self) -> str:
        """Names of the columns for a message."""
        if self.columns is None:
            return "a file without a header"
        return "columns " + ", ".join(f"`{name}`" for name in self.columns)

    def find(self, *names: str) -> str | None:
        """Returns the first of some names that is a column, or None."""
        return next((name for name in names if name in (self.columns or ())), None)

    def index_of(self, column: str | int) -> str | int:
        """Returns the key that reads a column, given by name or 0-based index, from a row.

        A ValueError, which lists the columns, if there is no such column.
        """
        if isinstance(column, int):
            width = len(self.rows[0]) if self.columns is None else len(self.columns)
            if isinstance(self.rows[0], dict) or not 0 <= column < width:
                raise ValueError(
                    f"{self.source}: a column's index must be in 0..{width - 1} of a TSV or CSV "
                    f"file. Received: column={column}"
                )
            return column
        if self.columns is None:
            raise ValueError(
                f"{self.source}: all columns must be given by index (0, 1, ...) where one is. "
                f"Received: column={column!r}"
            )
        if self.columns.count(column) != 1:
            is_there = column in self.columns
            raise ValueError(
                f"{self.source}, line 1: the file must have {'one' if is_there else 'a'} column "
                f"`{column}`. Received: {self.header}."
                f"{'' if is_there else nearest(column, self.columns)}"
            )
        return column if isinstance(self.rows[0], dict) else self.columns.index(column)

    def place(self, row: int, column: object) -> str:
        """Returns the location of a value for messages: file, line and column."""
        return f"{self.source}, line {self.lines[row]}, column `{column}`"

    def values(self, column: str | int) -> list[Any]:
        """Returns the values of a column; None where a JSON object lacks it."""
        key = self.index_of(column)
        if isinstance(self.rows[0], dict):
            return [row.get(key) for row in self.rows]
        return [row[key] for row in self.rows]

    def texts(self, column: str | int, *, strict: bool = False, missing: Any = None) -> list[str]:
        """Returns the values of a column; a ValueError for one that is not a string.

        `missing` stands for those that are missing; None: each must be there. Lone surrogates are
        kept, or with `strict` a ValueError.
        """
        values = [missing if value is None else value for value in self.values(column)]
        for row, value in enumerate(values):
            if not isinstance(value, str):
                raise ValueError(
                    f"{self.place(row, column)}: the value must be a string. Received: "
                    f"{shortened(value)}"
                )
        return self._valid(values, column) if strict else values

    def ids(self, column: str | int, *, strict: bool = False) -> list[str]:
        """Returns the strings and integers of a column as strings; the rest as `texts`."""
        values = self.values(column)
        for row, value in enumerate(values):
            if isinstance(value, bool) or not isinstance(value, (str, int)):
                raise ValueError(
                    f"{self.place(row, column)}: the id must be a string or an integer. Received: "
                    f"{shortened(value)}"
                )
        ids = [str(value) for value in values]
        return self._valid(ids, column) if strict else ids

    def _valid(self, texts: list[str], column: str | int) -> list[str]:
        return [without_surrogates(text, self.place(row, column)) for row, text in enumerate(texts)]


def read_table(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    header: bool = True,
    quoting: bool | str | None = None,
    malformed_rows: str = "error",
) -> Table:
    """Reads a file of rows, at least one. Blank lines are left out.

    A ValueError, with file and line, says that the file is empty, has only a header, or does not
    follow its format.

    Args:
        path: a TSV, CSV, JSON Lines or JSON file in UTF-8 (a byte order mark is accepted), or one
            of these gzipped. JSON is an object {id: {column: value}} or a list of objects; the ids
            become a column `id` where the objects have none.
        format: "tsv", "csv", "jsonl" or "json"; None takes it from the name.
        header: whether the first line of a TSV or CSV file names the columns.
        quoting: whether fields may be quoted ("a ""quoted"" field"). None: in CSV yes, in TSV no,
            with a warning where they look quoted. "auto": in CSV, and in TSV where they look
            quoted.
        malformed_rows: "error", or "skip" to leave out rows with too few or too many fields and to
            warn once.
    """
    source = os.fspath(path)
    kind = format_of(source, format)
    for name, value, known in (
        ("quoting", quoting, (None, True, False, "auto")),
        ("malformed_rows", malformed_rows, ("error", "skip")),
    ):
        if value not in known:
            raise ValueError(f"`{name}` must be one of {known}. Received: {name}={value!r}")
    found = _rows(path, kind, header, quoting)
    between = "," if kind == "csv" else "\t"
    if not any(isinstance(row, dict) or between.join(row).strip() for _, row in found):
        raise ValueError(f"{source}: the file must hold examples. Received: an empty file")
    names: Any = None
    if isinstance(found[0][1], dict):
        names = dict.fromkeys(name for _, row in found for name in row)
    else:
        line, names = found.pop(0) if header else (0, None)
        if not found:
            raise ValueError(
                f"{source}: the file must hold examples. Received: only a header (line {line})"
            )
        found = _same_width(source, found, len(names or found[0][1]), malformed_rows)
    columns = None if names is None else tuple(names)
    return Table(source, columns, [row for _, row in found], [line for line, _ in found])


def check_columns(
    path: str | os.PathLike[str], columns: Sequence[str | int], *, header: bool = True
) -> None:
    """Raises the errors of `first_rows`, and of `index_of` for columns that are missing there."""
    table = first_rows(path, header=header)
    if table is not None:
        for column in columns:
            table.index_of(column)


def first_rows(path: str | os.PathLike[str], *, header: bool = True) -> Table | None:
    """Reads the first rows of a table, one at least, to report a wrong column early.

    Returns None where the first lines hold no whole row, and for a pipe, which can be read only
    once. Raises a ValueError if the first lines are not a table.
    """
    source = os.fspath(path)
    kind = format_of(source)
    if not Path(path).is_file():
        return None
    if Path(path).stat().st_size <= _FIRST_BYTES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the reader of the whole file warns
            return read_table(path, header=header)
    if kind == "json":
        return None
    try:
        with open_text(path) as file:
            content = file.read(_FIRST_BYTES)
    except (OSError, EOFError, zlib.error):
        return None  # the reader of the whole file reports it
    whole = BytesIO(content[: content.rfind(b"\n") + 1])
    lines: Iterable[str] = text_lines(path, whole, "replace")
    lines = checked_header(source, lines, kind) if header else lines
    rows = text_rows(source, lines, kind, header=False)
    wanted = 2 if header and kind != "jsonl" else 1
    try:
        found = list(islice(rows, wanted))
    except ValueError:
        if kind == "jsonl":
            raise
        return None  # possibly a quoted field that is cut off here
    if len(found) < wanted:
        return None
    line, row = found[-1]
    names = tuple(found[0][1]) if header or kind == "jsonl" else None
    return Table(source, names, [row], [line])


def format_of(source: str, format: str | None = None) -> str:
    """Returns `format`, or the format of a file by its name, if there is such a format."""
    if format is None:
        format = format_by_name(source)
        if format is None:
            raise ValueError(
                f"`path` must end in {', '.join(SUFFIXES)} (or these with .gz), which tells the "
                f"format. Received: path={source!r}"
            )
    if format not in FORMATS:
        raise ValueError(f"`format` must be one of {FORMATS}. Received: format={format!r}")
    return format


def _rows(
    path: str | os.PathLike[str], kind: str, header: bool, quoting: bool | str | None
) -> list[tuple[int, Any]]:
    source = os.fspath(path)
    with open_text(path) as stream:
        lines: Iterable[str] = text_lines(path, stream)
        if kind != "tsv" or isinstance(quoting, bool):
            quoted = quoting if isinstance(quoting, bool) else None
            return list(text_rows(source, lines, kind, header=header, quoted=quoted))
        # A pipe can be read only once.
        lines = list(lines) if quoting == "auto" else lines
        rows = list(text_rows(source, lines, kind, header=header))
    if not looks_quoted(row for _, row in rows):
        return rows
    if quoting == "auto":
        return list(text_rows(source, lines, kind, header=header, quoted=True))
    warnings.warn(
        f"{source}: the fields look quoted as in CSV. They are read as they stand; pass "
        "quoting=True to take the quotes off, quoting=False to silence this warning.",
        stacklevel=4,
    )
    return rows


def _same_width(
    source: str, rows: list[tuple[int, Any]], width: int, malformed_rows: str
) -> list[tuple[int, Any]]:
    bad = [line for line, row in rows if len(row) != width]
    if malformed_rows == "error" or len(bad) == len(rows):
        for line, row in rows:
            check_width(source, line, row, width)
    if bad:
        warnings.warn(
            f"{source}: {len(bad)} rows without {width} fields were left out (lines "
            f"{', '.join(map(str, bad[:10]))}{', ...' if len(bad) > 10 else ''}).",
            stacklevel=4,
        )
    return [one for one in rows if len(one[1]) == width]

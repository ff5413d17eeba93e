"""Tables of text on disk: TSV, CSV, JSON Lines and JSON, plain or gzipped, with line numbers."""

import difflib
import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kbert.data.tables.delimited_rows import looks_quoted, plain_rows, quoted_rows
from kbert.data.tables.json_rows import json_rows
from kbert.data.tables.text_files import read_text

FORMATS = ("tsv", "csv", "jsonl", "json")
_FORMAT_OF_SUFFIX = {
    ".tsv": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
}


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns " Did you mean `x`?" for the name in `known` closest to `name`, or ""."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f" Did you mean `{by_lower[close[0]]}`?" if close else ""


@dataclass(frozen=True)
class Table:
    """Rows of a file.

    Attributes:
        source: path of the file, for messages.
        columns: names of the columns; None for a file without a header.
        rows: one list of fields (TSV, CSV) or one dict (JSON) a row; never empty.
        lines: 1-based line where each row starts.
    """

    source: str
    columns: tuple[str, ...] | None
    rows: Sequence[Any]
    lines: list[int]

    def index_of(self, column: str | int) -> str | int:
        """Returns the key that reads `column` from a row.

        Args:
            column: name of a column, or its 0-based index.

        Raises:
            ValueError: the table has no such column; the message lists those that it has.
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
                f"{self.source}: columns must be given by index (0, 1, ...) where `header` is "
                f"False. Received: column={column!r}"
            )
        if self.columns.count(column) != 1:
            problem = "occur once in" if column in self.columns else "be one of"
            raise ValueError(
                f"{self.source}, line 1: the column must {problem} the file's columns "
                f"{', '.join(f'`{name}`' for name in self.columns)}. Received: column="
                f"{column!r}.{'' if column in self.columns else nearest(column, self.columns)}"
            )
        return column if isinstance(self.rows[0], dict) else self.columns.index(column)

    def values(self, column: str | int) -> list[Any]:
        """Returns the values of a column; None where a JSON object lacks it.

        Args:
            column: name of a column, or its 0-based index.

        Raises:
            ValueError: the table has no such column.
        """
        key = self.index_of(column)
        if isinstance(self.rows[0], dict):
            return [row.get(key) for row in self.rows]
        return [row[key] for row in self.rows]

    def texts(self, column: str | int) -> list[str]:
        """Returns the values of a column, all of them strings.

        Args:
            column: name of a column, or its 0-based index.

        Raises:
            ValueError: no such column, or a JSON value that is missing or not a string.
        """
        values = self.values(column)
        if isinstance(self.rows[0], dict):
            for value, line in zip(values, self.lines):
                if not isinstance(value, str):
                    raise ValueError(
                        f"{self.source}, line {line}, column `{column}`: the value must be a "
                        f"string. Received: {'nothing' if value is None else repr(value)}"
                    )
        return values

    def ids(self, column: str | int) -> list[str]:
        """Returns the ids in a column as strings.

        Args:
            column: name of a column, or its 0-based index.

        Raises:
            ValueError: no such column, or a JSON value that is neither string nor integer.
        """
        values = self.values(column)
        if isinstance(self.rows[0], list):
            return values
        for value, line in zip(values, self.lines):
            if isinstance(value, bool) or not isinstance(value, (str, int)):
                raise ValueError(
                    f"{self.source}, line {line}, column `{column}`: the id must be a string or "
                    f"an integer. Received: {'nothing' if value is None else repr(value)}"
                )
        return [str(value) for value in values]


def read_table(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    header: bool = True,
    quoting: bool | str | None = None,
    encoding_errors: str = "strict",
    malformed_rows: str = "error",
) -> Table:
    """Reads a file of rows. Blank lines are left out.

    Args:
        path: a TSV, CSV, JSON Lines or JSON file in UTF-8 (a byte order mark is accepted), or one
            of these gzipped. JSON is an object {id: {column: value}} or a list of objects; the ids
            become a column `id` where the objects have none.
        format: "tsv", "csv", "jsonl" or "json"; None takes it from the name.
        header: whether the first line of a TSV or CSV file names the columns.
        quoting: whether fields may be quoted ("a ""quoted"" field"). None: in CSV yes, in TSV no,
            with a warning where they look quoted. "auto": in CSV, and in TSV where they look
            quoted.
        encoding_errors: "strict", or "replace" to read U+FFFD for bytes that are not UTF-8.
        malformed_rows: "error", or "skip" to leave out rows with too few or too many fields and
            to warn once.

    Returns:
        A `Table` of at least one row.

    Raises:
        ValueError: the file is empty, has only a header, or does not follow its format. The
            message names the file and the line.
        FileNotFoundError: there is no such file.
    """
    source = os.fspath(path)
    kind = format_of(source, format)
    for name, value, known in (
        ("quoting", quoting, (None, True, False, "auto")),
        ("malformed_rows", malformed_rows, ("error", "skip")),
    ):
        if value not in known:
            raise ValueError(f"`{name}` must be one of {known}. Received: {name}={value!r}")
    text = read_text(path, encoding_errors)
    if not text.strip():
        raise ValueError(f"{source}: the file must hold examples. Received: an empty file")
    if kind in ("jsonl", "json"):
        objects, lines = json_rows(source, text, one_a_line=kind == "jsonl")
        names = dict.fromkeys(name for row in objects for name in row)
        return Table(source, tuple(names), objects, lines)
    rows, lines = _rows(source, text, kind, quoting)
    columns = tuple(rows.pop(0)) if header else None
    header_line = lines.pop(0) if header else 0
    if not rows:
        raise ValueError(
            f"{source}: the file must hold examples. Received: only a header (line {header_line})"
        )
    width = len(rows[0]) if columns is None else len(columns)
    rows, lines = _same_width(source, rows, lines, width, malformed_rows)
    return Table(source, columns, rows, lines)


def format_of(source: str, format: str | None = None) -> str:
    """Returns the format of a file.

    Args:
        source: its path.
        format: "tsv", "csv", "jsonl" or "json"; None takes it from the name.

    Raises:
        ValueError: the name has no known ending, or there is no such format.
    """
    if format is None:
        name = source[: -len(".gz")] if source.endswith(".gz") else source
        format = _FORMAT_OF_SUFFIX.get(os.path.splitext(name)[1].lower())
        if format is None:
            raise ValueError(
                f"`path` must end in {', '.join(_FORMAT_OF_SUFFIX)} (or these with .gz), unless "
                f"`format` tells what it is. Received: path={source!r}"
            )
    if format not in FORMATS:
        raise ValueError(f"`format` must be one of {FORMATS}. Received: format={format!r}")
    return format


def _rows(
    source: str, text: str, kind: str, quoting: bool | str | None
) -> tuple[list[list[str]], list[int]]:
    delimiter = "\t" if kind == "tsv" else ","
    if quoting is True or kind == "csv" and quoting in (None, "auto"):
        return quoted_rows(source, text, delimiter)
    rows, lines = plain_rows(text, delimiter)
    if quoting is False or not looks_quoted(rows):
        return rows, lines
    if quoting == "auto":
        return quoted_rows(source, text, delimiter)
    warnings.warn(
        f"{source}: the fields look quoted as in CSV. They are read as they stand; pass "
        "quoting=True to take the quotes off, quoting=False to silence this warning.",
        stacklevel=4,
    )
    return rows, lines


def _same_width(
    source: str, rows: list[list[str]], lines: list[int], width: int, malformed_rows: str
) -> tuple[list[list[str]], list[int]]:
    bad = [i for i, row in enumerate(rows) if len(row) != width]
    if not bad:
        return rows, lines
    if malformed_rows == "error" or len(bad) == len(rows):
        raise ValueError(
            f"{source}, line {lines[bad[0]]}: each row must have {width} fields, as the first line "
            f"has. Received: {len(rows[bad[0]])} fields ({_shortened(rows[bad[0]])})"
        )
    warnings.warn(
        f"{source}: {len(bad)} rows without {width} fields were left out (lines "
        f"{', '.join(str(lines[i]) for i in bad[:10])}{', ...' if len(bad) > 10 else ''}).",
        stacklevel=4,
    )
    dropped = set(bad)
    kept = [i for i in range(len(rows)) if i not in dropped]
    return [rows[i] for i in kept], [lines[i] for i in kept]


def _shortened(row: Sequence[str]) -> str:
    text = repr(list(row))
    return text if len(text) <= 120 else f"{text[:120]}..."

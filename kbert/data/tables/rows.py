"""Rows of TSV, CSV, JSON Lines and JSON, one by one, each with the line where it starts.

Sources: RFC 4180 as Python's `csv` module reads it, for CSV; the files of the GLUE benchmark, for
TSV without quoting; RFC 8259 and jsonlines.org for JSON.
"""

import csv
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from kbert.data.tables.columns import GZIP, cut

_FORMAT_OF_SUFFIX = {
    ".tsv": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
}
SUFFIXES = tuple(_FORMAT_OF_SUFFIX)
_DELIMITERS = {"csv": ",", "tsv": "\t"}
_NAMES = {",": "commas", "\t": "tabs", ";": "semicolons"}
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
_QUOTED = re.compile(r'"[^"]*(?:""[^"]*)*"')
_LONE_RETURN = re.compile(r"(?<=\r)(?=[^\r\n])")


def format_by_name(path: str | os.PathLike[str]) -> str | None:
    """Returns "tsv", "csv", "jsonl" or "json" by the end of a name, before .gz; None for others."""
    name = os.fspath(path).lower().removesuffix(GZIP)
    return _FORMAT_OF_SUFFIX.get(os.path.splitext(name)[1])


def text_rows(
    source: str,
    lines: Iterable[str],
    kind: str,
    *,
    header: bool = True,
    quoted: bool | None = None,
    empty_rows: bool = False,
    constants: bool = True,
) -> Iterator[tuple[int, Any]]:
    """Yields the rows of a text, the header among them, each with the 1-based line where it starts.

    A row is a list of fields; of JSON an object, with its id as `id` where it has none. Blank lines
    are left out. A ValueError, with the line, says that a quoted field is not closed or has text
    behind its closing quote, that what must be a JSON object is none, or that JSON holds an id
    twice, or no object.

    Args:
        kind: "tsv", "csv", "jsonl", or "json", a list of objects or an object {id: object}, whose
            lines are read all at once.
        header: whether the first row of TSV and CSV names the columns; see `checked_header`.
        quoted: whether fields may be quoted ("a ""quoted"" field"); None: in CSV.
        empty_rows: whether an empty line is a row where the first row has one field.
        constants: whether JSON may hold NaN and Infinity.
    """
    if kind == "json":
        yield from _json_objects(source, "".join(lines))
        return
    if kind == "jsonl":
        yield from _json_lines(source, lines, constants)
        return
    lines = checked_header(source, lines, kind) if header else lines
    delimiter = _DELIMITERS[kind]
    is_quoted = kind == "csv" if quoted is None else quoted
    width = 0
    for line, row in (_quoted if is_quoted else _plain)(source, lines, delimiter):
        if row or (empty_rows and width == 1):
            width = width or len(row)
            yield line, row or [""]


def checked_header(source: str, lines: Iterable[str], kind: str) -> Iterable[str]:
    """Returns all lines, or raises a ValueError for a header that other characters separate.

    Such a header is one column of CSV with a semicolon or a tab, or one of TSV with a semicolon or
    a comma. Of a header that goes on behind its first line nothing is said.
    """
    if kind not in _DELIMITERS:
        return lines
    lines, read = iter(lines), []
    for line in lines:
        read.append(line)
        first = line.partition("\r")[0].strip("\n")
        bare = _QUOTED.sub("", first)
        if bare.strip() and '"' not in bare and _DELIMITERS[kind] not in bare:
            seem = max(_NAMES, key=bare.count)
            if seem in bare:
                raise ValueError(
                    f"{source}, line {len(read)}: the fields must be separated by commas in .csv, "
                    f"and by tabs in .tsv. Received: {cut(first)!r}, whose fields seem to be "
                    f"separated by {_NAMES[seem]} ({seem!r})"
                )
        if line.strip():
            break
    return chain(read, lines)


def looks_quoted(rows: Iterable[Sequence[str]]) -> bool:
    """Returns whether fields that were split without regard to quotes follow CSV's quoting.

    True when some field holds a doubled quote inside quotes and every field that holds a quote at
    all is enclosed in quotes with its inner quotes doubled. Running text fails this at once.
    """
    doubled = False
    for field in (field for row in rows for field in row if '"' in field):
        if not _QUOTED.fullmatch(field):
            return False
        doubled = doubled or '""' in field[1:-1]
    return doubled


def check_width(source: str, line: int, row: Sequence[str], width: int) -> None:
    """Raises a ValueError for a row that has not as many fields as the first."""
    if len(row) != width:
        there = ", ".join(f"`{field}`" for field in row)
        raise ValueError(
            f"{source}, line {line}: each row must have {_fields(width)}, as the first line has. "
            f"Received: {_fields(len(row))}: {cut(there, 120)}"
        )


def _fields(count: int) -> str:
    return f"{count} field{'' if count == 1 else 's'}"


def json_value(source: str, text: str, contents: str) -> Any:
    """Reads one JSON value, or raises a ValueError, with the line where that is known."""
    _check_filled(source, text, contents)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{source}, line {error.lineno}: the file must be JSON. Received: {error.msg} at "
            f"column {error.colno}"
        ) from error
    except (ValueError, RecursionError) as error:  # a number too long, or brackets too deep
        raise ValueError(f"{source}: the file must be JSON. Received: {error}") from error


def _plain(source: str, lines: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(lines, start=1):
        text = line.removesuffix("\n").removesuffix("\r")
        yield number, text.split(delimiter) if text else []


def _quoted(source: str, lines: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(_cut_lines(lines), delimiter=delimiter, strict=True)
    while True:
        start = reader.line_num + 1
        limit = csv.field_size_limit(sys.maxsize)
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise ValueError(
                f"{source}, line {start}: quoted fields must be closed, with inner quotes doubled. "
                f"Received: {error}"
            ) from error
        finally:
            csv.field_size_limit(limit)
        if row is None:
            return
        yield start, row


def _cut_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yields lines of CSV, where a lone carriage return ends one too."""
    for line in lines:
        if line.count("\r") > line.endswith("\r\n"):
            yield from _LONE_RETURN.split(line)
        else:
            yield line


def _json_lines(
    source: str, lines: Iterable[str], constants: bool
) -> Iterator[tuple[int, dict[str, Any]]]:
    checked = None if constants else _no_constant
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        reason = ""
        try:
            value = json.loads(line.rstrip("\r\n"), parse_constant=checked)
        except json.JSONDecodeError as error:
            value, reason = None, f" ({error.msg} at column {error.colno})"
        except (ValueError, RecursionError) as error:  # a number too long, or brackets too deep
            value, reason = None, f" ({error})"
        if not isinstance(value, dict):
            raise ValueError(
                f"{source}, line {number}: each line must be a JSON object. Received: "
                f"{cut(line.strip())}{reason}"
            )
        yield number, value


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _json_objects(source: str, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    _check_filled(source, text, "examples")
    seen: dict[str, int] = {}
    line = 0
    for line, key, value in _entries(source, text):
        if not isinstance(value, dict):
            raise ValueError(
                f"{source}, line {line}: each example must be a JSON object. Received: "
                f"{cut(json.dumps(value))}"
            )
        if key in seen:
            raise ValueError(
                f"{source}, line {line}: each id must occur once. Received: {key!r}, which "
                f"line {seen[key]} has too"
            )
        if key is not None:
            seen[key] = line
            value = {"id": key, **value}
        yield line, value
    if not line:
        raise ValueError(f"{source}: the file must hold examples. Received: no object")


def _entries(source: str, text: str) -> Iterator[tuple[int, str | None, Any]]:
    """Parses the outermost list or object entry by entry, so that each entry's line is known."""
    position = _skip_space(text, 0)
    opening = text[position]
    if opening not in "{[":
        raise ValueError(
            f"{source}, line 1: the file must be a JSON object or list. Received: "
            f"{cut(text[position:])}"
        )
    closing = "}" if opening == "{" else "]"
    position = _skip_space(text, position + 1)
    line, counted = 1, 0
    while text[position : position + 1] != closing:
        line, counted = line + text.count("\n", counted, position), position
        key = None
        try:
            if opening == "{":
                key, position = _DECODER.raw_decode(text, position)
                position = _after(text, position, ":")
            value, position = _DECODER.raw_decode(text, position)
            position = _skip_space(text, position)
            if text[position : position + 1] != closing:
                position = _after(text, position, ",")
                if text[position : position + 1] == closing:
                    raise json.JSONDecodeError("a comma behind the last entry", text, position)
        except (ValueError, IndexError, RecursionError) as error:
            reason = "unexpected end" if isinstance(error, IndexError) else str(error)
            reason = error.msg if isinstance(error, json.JSONDecodeError) else reason
            raise ValueError(
                f"{source}, line {line}: the file must be JSON. Received: an entry that cannot be "
                f"read ({reason})"
            ) from error
        yield line, key, value
    rest = _skip_space(text, position + 1)
    if rest < len(text):
        raise ValueError(
            f"{source}, line {1 + text.count(chr(10), 0, rest)}: the file must hold one JSON "
            f"value. Received: more behind it: {cut(text[rest:])}"
        )


def _check_filled(source: str, text: str, contents: str) -> None:
    if not text.strip():
        raise ValueError(f"{source}: the file must hold {contents}. Received: an empty file")


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _after(text: str, position: int, character: str) -> int:
    position = _skip_space(text, position)
    if text[position : position + 1] != character:
        raise json.JSONDecodeError(f"`{character}` is missing", text, position)
    return _skip_space(text, position + 1)

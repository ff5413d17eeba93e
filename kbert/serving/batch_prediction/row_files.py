"""Readers of rows of files of any size, some at a time: JSON Lines, TSV, CSV and Parquet.

JSON Lines has an object a line. TSV is split at its tabs only; CSV has the quotes of RFC 4180;
both have a header. These three may be gzipped. Parquet needs pyarrow: `pip install
".[parquet]"`.
"""

import csv
import gzip
import importlib
import json
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

BLOCK_ROWS = 8192
# A block of longer texts has fewer rows, so that memory does not grow with the texts.
BLOCK_BYTES = 32_000_000
# Rows of a Parquet file that are read at a time, whatever their size.
_PARQUET_ROWS = 256
_FORMATS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".tsv": "tsv",
    ".csv": "csv",
    ".parquet": "parquet",
}
_SHOWN = 80
# Of a row: name of each column -> its value; the line where it starts; its bytes.
_Found = tuple[dict[str, Any], int, int]


@dataclass(frozen=True)
class Block:
    """Some rows of a file, in their order.

    Attributes:
        number: 0 for the first block.
        columns: The names of the columns; of JSON Lines those that occur in these rows.
        rows: Name of each column -> its value.
        places: Location of each row, for messages: "line 3", "row 3".
        schema: The pyarrow schema of a Parquet file, or None.
    """

    number: int
    columns: list[str]
    rows: list[dict[str, Any]]
    places: list[str]
    schema: Any = None


def file_format(path: str | os.PathLike[str], option: str) -> tuple[str, bool]:
    """Returns the format of a file by its name, and whether it is gzipped.

    Args:
        path: The file; it need not exist.
        option: The user's option for it, for the message.

    Returns:
        "jsonl", "tsv", "csv" or "parquet"; True for a name that ends in ".gz".

    Raises:
        ValueError: The name has another ending.
    """
    name = Path(path).name.lower()
    is_gzipped = name.endswith(".gz")
    found = _FORMATS.get(Path(name.removesuffix(".gz")).suffix)
    if found is None or (found == "parquet" and is_gzipped):
        raise ValueError(
            f"`{option}` must end in .jsonl, .tsv or .csv, also with .gz, or in .parquet. "
            f"Received: {path}"
        )
    return found, is_gzipped


def read_blocks(
    path: str | os.PathLike[str],
    block_rows: int = BLOCK_ROWS,
    on_progress: Callable[[float], None] = lambda share: None,
) -> Iterator[Block]:
    """Reads a file block by block. The same file has the same blocks.

    Args:
        path: The file; the ending of its name is its format.
        block_rows: Rows of a block; fewer where they are long.
        on_progress: Called after each block with the share of the file that has been read, 0 to 1.

    Yields:
        The blocks; a file without rows has one block without rows.

    Raises:
        ValueError: A row does not follow the format; the message names file and line.
        FileNotFoundError: There is no such file.
        ImportError: The file is Parquet, and pyarrow is not installed.
    """
    kind, is_gzipped = file_format(path, "--input")
    if kind == "parquet":
        yield from _parquet_blocks(Path(path), block_rows, on_progress)
        return
    with Path(path).open("rb") as raw:
        size = max(os.fstat(raw.fileno()).st_size, 1)
        stream: Any = gzip.GzipFile(fileobj=raw) if is_gzipped else raw
        header: list[str] = []
        reading = _lines(str(path), stream)
        if kind == "jsonl":
            found = _json_rows(str(path), reading)
        else:
            found = _delimited_rows(str(path), reading, kind, header)
        for block in _blocks(found, header, block_rows):
            yield block
            on_progress(raw.tell() / size)


def pyarrow(module: str) -> Any:
    """Imports a module of pyarrow, where it is used.

    Args:
        module: Its name, such as "pyarrow.parquet".

    Raises:
        ImportError: It is not installed; the message says how to install it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            'Parquet files need pyarrow: pip install ".[parquet]" in the checkout of kbert. '
            f"Received: {error}"
        ) from error


def _blocks(
    found: Iterator[_Found], header: list[str], block_rows: int, unit: str = "line"
) -> Iterator[Block]:
    """Divides rows into blocks; `header` is filled when the first row is read."""
    rows: list[dict[str, Any]] = []
    places: list[str] = []
    number = size = 0
    for row, line, width in found:
        rows.append(row)
        places.append(f"{unit} {line}")
        size += width
        if len(rows) == block_rows or size >= BLOCK_BYTES:
            yield Block(number, _columns(header, rows), rows, places)
            rows, places, number, size = [], [], number + 1, 0
    if rows or not number:
        yield Block(number, _columns(header, rows), rows, places)


def _columns(header: list[str], rows: list[dict[str, Any]]) -> list[str]:
    return list(header) or list(dict.fromkeys(name for row in rows for name in row))


def _lines(source: str, stream: IO[bytes]) -> Iterator[tuple[int, str]]:
    """Yields number and text of each line, with its end."""
    number = 0
    try:
        for number, line in enumerate(stream, start=1):
            yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{source}, line {number}: the text must be UTF-8. Received: byte "
            f"{error.object[error.start]:#04x} at position {error.start}"
        ) from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(
            f"{source}: the file must be whole and gzipped. Received: {error} behind line {number}"
        ) from error


def _json_rows(source: str, lines: Iterator[tuple[int, str]]) -> Iterator[_Found]:
    for number, line in lines:
        if not line.strip():
            continue
        try:
            row = json.loads(line, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"{source}, line {number}: each line must be a JSON object. Received: "
                f"{line.strip()[:_SHOWN]} ({error})"
            ) from error
        if not isinstance(row, dict):
            raise ValueError(
                f"{source}, line {number}: each line must be a JSON object. Received: "
                f"{line.strip()[:_SHOWN]}"
            )
        yield row, number, len(line)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _delimited_rows(
    source: str, lines: Iterator[tuple[int, str]], kind: str, header: list[str]
) -> Iterator[_Found]:
    """Yields the rows of TSV or CSV; puts the names of the columns into `header`."""
    for number, fields in _tab_fields(lines) if kind == "tsv" else _csv_fields(source, lines):
        if not header:
            header += fields
            if len(set(fields)) < len(fields):
                raise ValueError(
                    f"{source}, line {number}: the columns must have different names. Received: "
                    f"{', '.join(fields)[:_SHOWN]}"
                )
            continue
        if len(fields) != len(header):
            raise ValueError(
                f"{source}, line {number}: a row must have {len(header)} fields, as the header "
                f"({', '.join(header)[:_SHOWN]}). Received: {len(fields)}"
            )
        yield dict(zip(header, fields)), number, sum(map(len, fields))


def _tab_fields(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    columns = 0  # until the header has been read
    for number, line in lines:
        # Only these end a line: str.splitlines would also split at U+2028 inside a text.
        content = line.removesuffix("\n").removesuffix("\r")
        # In a table of one column an empty line is a row, whose text is empty.
        if content or columns == 1:
            fields = content.split("\t")
            columns = columns or len(fields)
            yield number, fields


def _csv_fields(source: str, lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(sys.maxsize)
    reader = csv.reader((line for _, line in lines), strict=True)
    start, columns = 1, 0  # until the header has been read
    while True:
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ValueError(
                f"{source}, line {start}: the row must be CSV, with quotes as RFC 4180 has them. "
                f"Received: {error}"
            ) from error
        # In a table of one column an empty line is a row.
        if fields or columns == 1:
            columns = columns or len(fields)
            yield start, fields or [""]
        start = reader.line_num + 1


def _parquet_rows(file: Any) -> Iterator[_Found]:
    number = 0
    for batch in file.iter_batches(batch_size=_PARQUET_ROWS):
        for row in batch.to_pylist():
            number += 1
            yield row, number, sum(map(_width, row.values()))


def _width(value: Any) -> int:
    """Estimates the bytes of a value."""
    if isinstance(value, list):
        return sum(map(_width, value))
    return len(value) if isinstance(value, str | bytes) else 8


def _parquet_blocks(
    path: Path, block_rows: int, on_progress: Callable[[float], None]
) -> Iterator[Block]:
    arrow, parquet = pyarrow("pyarrow"), pyarrow("pyarrow.parquet")
    if not path.is_file():
        raise FileNotFoundError(f"`--input` must be a file. Received: {path}")
    try:
        with parquet.ParquetFile(path) as file:
            schema, total = file.schema_arrow, max(file.metadata.num_rows, 1)
            done = 0
            for block in _blocks(_parquet_rows(file), schema.names, block_rows, "row"):
                yield replace(block, schema=schema)
                done += len(block.rows)
                on_progress(done / total)
    except arrow.ArrowInvalid as error:
        raise ValueError(f"{path}: the file must be Parquet. Received: {error}") from error

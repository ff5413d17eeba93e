"""Readers of blocks of rows of files of any size: JSON Lines, TSV, CSV and Parquet.

TSV and CSV have a header; they and JSON Lines are read as `kbert.data.tables.rows` does, TSV
without quotes. Parquet needs pyarrow, of the extra "parquet".
"""

import gzip
import importlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kbert.data.tables.columns import cut, is_gzipped, text_lines
from kbert.data.tables.rows import check_width, format_by_name, text_rows
from kbert.extras import install_extra

BLOCK_ROWS = 8192
# A block of longer texts has fewer rows, so that memory does not grow with the texts.
BLOCK_BYTES = 32_000_000
# Rows of a Parquet file that are read at a time, whatever their size.
_PARQUET_ROWS = 256
# Of a row: name of each column -> its value; the line where it starts; its bytes.
_Found = tuple[dict[str, Any], int, int]


@dataclass(frozen=True)
class Block:
    """Some rows of a file, in their order; `number` is 0 for the first block.

    `columns` of JSON Lines are those that occur in these rows. `places` are the rows' locations for
    messages: "line 3", "row 3". `schema` is the pyarrow schema of a Parquet file.
    """

    number: int
    columns: list[str]
    rows: list[dict[str, Any]]
    places: list[str]
    schema: Any = None


def file_format(path: str | os.PathLike[str], option: str) -> tuple[str, bool]:
    """Returns "jsonl", "tsv", "csv" or "parquet" by a file's name, and whether it ends in .gz."""
    is_parquet = Path(path).suffix.lower() == ".parquet"
    found = "parquet" if is_parquet else format_by_name(path)
    if found is None or found == "json":
        raise ValueError(
            f"`{option}` must end in .jsonl, .tsv or .csv, also with .gz, or in .parquet. "
            f"Received: {path}"
        )
    return found, is_gzipped(path)


def read_blocks(
    path: str | os.PathLike[str],
    block_rows: int = BLOCK_ROWS,
    on_progress: Callable[[float], None] = lambda share: None,
) -> Iterator[Block]:
    """Reads a file in blocks of so many rows, fewer where these are long.

    The same file has the same blocks; one without rows has one block without rows. `on_progress` is
    called after each block with the share of the file that has been read, 0 to 1. The ValueError
    for a row that does not follow the format names file and line.
    """
    kind, compressed = file_format(path, "--input")
    if kind == "parquet":
        yield from _parquet_blocks(Path(path), block_rows, on_progress)
        return
    with Path(path).open("rb") as raw:
        size = max(os.fstat(raw.fileno()).st_size, 1)
        stream: Any = gzip.GzipFile(fileobj=raw) if compressed else raw
        header: list[str] = []
        found = _text_rows(str(path), text_lines(path, stream), kind, header)
        for block in _blocks(found, header, block_rows):
            yield block
            on_progress(raw.tell() / size)


def pyarrow(module: str) -> Any:
    """Imports a module such as "pyarrow.parquet" where it is used; the error names the extra."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"Parquet files need pyarrow: {install_extra('parquet')}. Received: {error}"
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


def _text_rows(source: str, lines: Iterator[str], kind: str, header: list[str]) -> Iterator[_Found]:
    """Yields the rows of a text; puts the names of the columns of TSV and CSV into `header`."""
    last = ""

    def watched() -> Iterator[str]:
        nonlocal last
        for last in lines:
            yield last

    for line, row in text_rows(source, watched(), kind, empty_rows=True, constants=False):
        if kind == "jsonl":
            yield row, line, len(last)  # the line of this row
        elif header:
            check_width(source, line, row, len(header))
            yield dict(zip(header, row)), line, sum(map(len, row))
        elif len(set(row)) < len(row):
            raise ValueError(
                f"{source}, line {line}: the columns must have different names. Received: "
                f"{cut(', '.join(row))}"
            )
        else:
            header += row


def _width(value: Any) -> int:
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
            batches = file.iter_batches(batch_size=_PARQUET_ROWS)
            rows = (row for batch in batches for row in batch.to_pylist())
            found = ((row, n, sum(map(_width, row.values()))) for n, row in enumerate(rows, 1))
            for block in _blocks(found, schema.names, block_rows, "row"):
                yield replace(block, schema=schema)
                done += len(block.rows)
                on_progress(done / total)
    except arrow.ArrowInvalid as error:
        raise ValueError(f"{path}: the file must be Parquet. Received: {error}") from error

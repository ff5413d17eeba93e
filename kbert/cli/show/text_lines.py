"""Texts from a stream, one per line, in batches: streams of any length in constant memory."""

from collections.abc import Callable, Iterator
from typing import BinaryIO

Row = tuple[str, ...]


def read_batches(
    stream: BinaryIO, split: Callable[[str, int], Row], batch_size: int
) -> Iterator[list[Row]]:
    """Yields the lines of a stream as rows, in batches.

    Lines end in `\\n` or `\\r\\n` only. An empty line is an empty text, so that there are as many
    answers as lines.

    Args:
        stream: UTF-8; a byte order mark at its start is skipped.
        split: Maps a line and its number (from 1) to a row.
        batch_size: Rows of a batch; the last one may have fewer.

    Yields:
        Lists of rows, never empty.

    Raises:
        ValueError: A line is not UTF-8, or `split` rejects it.
    """
    batch: list[Row] = []
    for number, line in enumerate(stream, start=1):
        batch.append(split(_decoded(line, number), number))
        if len(batch) == batch_size:
            yield batch
            batch = []
    if batch:
        yield batch


def _decoded(line: bytes, number: int) -> str:
    content = line.removesuffix(b"\n").removesuffix(b"\r")
    try:
        return content.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"stdin, line {number}: the text must be UTF-8. Received: byte "
            f"{content[error.start]:#04x} at position {error.start}"
        ) from error

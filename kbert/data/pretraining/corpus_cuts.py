"""Cuts of a long text into pieces, each of which is found without reading the text before it.

A text is cut near each multiple of a number of bytes: at the first end of a document behind it, or
of a line, a sentence, a word, a character, whichever of these is the first to be within as many
bytes. So the offset of a cut is a function of those bytes alone. Small files are joined to one
text.
"""

import re
import zlib
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from kbert.data.tables.columns import open_text

BLOCK_BYTES = 1 << 22  # default of a corpus
FILE_SEPARATOR = "\x1c"  # ASCII's, which tokenizers drop
_ENDS = tuple(map(re.compile, (r"\n", r"[.!?]\s+|[\u3002\uff01\uff1f]", r"\s")))
_BETWEEN = f"\n{FILE_SEPARATOR}\n".encode()
_BEGINS_NO_CHARACTER = range(0x80, 0xC0)  # continuation bytes of UTF-8


class Piece(NamedTuple):
    """Bytes of a text, their index from 0, and whether they begin or end inside a document."""

    content: bytes
    number: int
    is_cut: bool


def document_end(separator: str | None) -> re.Pattern[str]:
    """Compiles the pattern of a separator of documents, with the line ends around it.

    `separator` is a regular expression for a whole line, without its end; None for a blank line. A
    line of `FILE_SEPARATOR` alone ends a document in any case.
    """
    line = r"[^\S\n]*" if separator is None else rf"(?:{separator})[ \t\r]*"
    try:
        # Each file may begin with a byte order mark.
        return re.compile(rf"(?m)^\ufeff?(?:{line}|{FILE_SEPARATOR})(?:\n|\Z)")
    except re.error as error:
        raise ValueError(
            "`separator` must be a regular expression for a whole line. "
            f"Received: separator={separator!r} ({error})"
        ) from error


def cut_place(window: bytes, end_of_document: re.Pattern[str]) -> tuple[int, bool]:
    """Finds the offset at which to cut in `window`, the bytes from one multiple to the next.

    Returns it, and whether it is inside a document.
    """
    # So that positions in the string can be converted to bytes, whatever the bytes are.
    text = window.decode("utf-8", "surrogateescape")
    for number, pattern in enumerate((end_of_document, *_ENDS)):
        # A seeming whole line at the very beginning may be the rest of one.
        found = pattern.search(text, 0 if number else 1)
        if found is not None and found.end() < len(text):
            return len(text[: found.end()].encode("utf-8", "surrogateescape")), number > 0
    return next((i for i, byte in enumerate(window) if byte not in _BEGINS_NO_CHARACTER), 0), True


def pieces(
    parts: Iterator[bytes], piece_bytes: int, end_of_document: re.Pattern[str]
) -> Iterator[Piece]:
    """Cuts a text, which comes in parts, into pieces; about three of these are in memory.

    `piece_bytes` are the bytes from one multiple to the next. A piece has fewer than 2.5 times as
    many: the last one includes a remainder of less than half of them.
    """
    buffer, begin, was_cut, number = b"", 0, False, 0
    while True:
        # The buffer begins at a multiple; the rest of the piece before it ends at `begin`.
        while len(buffer) < 2 * piece_bytes and (part := next(parts, b"")):
            buffer += part
        if 2 * len(buffer) < 3 * piece_bytes:
            yield Piece(buffer[begin:], number, was_cut)
            return
        place, is_cut = cut_place(buffer[piece_bytes : 2 * piece_bytes], end_of_document)
        yield Piece(buffer[begin : piece_bytes + place], number, was_cut or is_cut)
        buffer, begin, was_cut, number = buffer[piece_bytes:], place, is_cut, number + 1


def count_pieces(size: int, piece_bytes: int) -> int:
    """Returns the number of pieces of a text of `size` bytes, see `pieces`."""
    return max(1, (2 * size + piece_bytes) // (2 * piece_bytes))


def piece_at(
    file: BinaryIO, number: int, size: int, piece_bytes: int, end_of_document: re.Pattern[str]
) -> Piece:
    """Reads a piece by its number from 0, as `pieces` finds it, of a file of `size` bytes."""
    is_last = number == count_pieces(size, piece_bytes) - 1
    file.seek(number * piece_bytes)
    content = file.read(-1 if is_last else 2 * piece_bytes)
    begin, was_cut = cut_place(content[:piece_bytes], end_of_document) if number else (0, False)
    if is_last:
        return Piece(content[begin:], number, was_cut)
    place, is_cut = cut_place(content[piece_bytes : 2 * piece_bytes], end_of_document)
    return Piece(content[begin : piece_bytes + place], number, was_cut or is_cut)


def joined_parts(paths: Iterable[Path], size: int) -> Generator[bytes]:
    """Reads files, plain or gzipped, one after the other, in parts of at most `size` bytes.

    Between two files stands a line that ends a document.
    """
    for number, path in enumerate(paths):
        if number:
            yield _BETWEEN
        with open_text(path) as file:
            while part := read_part(file, size, path):
                yield part


def read_part(file: BinaryIO, size: int, path: Path) -> bytes:
    """Reads some of what `open_text` opened at `path`; a ValueError if it is not gzip."""
    try:
        return file.read(size)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: the file must be gzip data. Received: {error}") from error

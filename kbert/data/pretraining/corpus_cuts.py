"""Cuts of a long text into pieces, each of which is found without reading the text before it.

A text is cut near each multiple of a number of bytes: at the first end of a document behind it, or
of a line, a sentence, a word, a character, whichever of these is the first to be within as many
bytes. So the offset of a cut is a function of those bytes alone. Small files are joined to one
text.
"""

import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

from kbert.data.tables.text_files import open_text

BLOCK_BYTES = 1 << 22  # default of a corpus
FILE_SEPARATOR = "\x1c"  # ASCII's, which tokenizers drop
_ENDS = tuple(map(re.compile, (r"\n", r"[.!?]\s+|[\u3002\uff01\uff1f]", r"\s")))
_BETWEEN = f"\n{FILE_SEPARATOR}\n".encode()
_BEGINS_NO_CHARACTER = range(0x80, 0xC0)  # continuation bytes of UTF-8


class Reader(Protocol):
    """A source of bytes."""

    def read(self, size: int, /) -> bytes:
        """Reads at most `size` bytes; returns none only at the end."""


class Piece(NamedTuple):
    """A piece of a text.

    Attributes:
        content: its bytes.
        number: its index, from 0.
        is_cut: whether it begins or ends inside a document.
    """

    content: bytes
    number: int
    is_cut: bool


def document_end(separator: str | None) -> re.Pattern[str]:
    """Compiles the pattern of a separator of documents, with the line ends around it.

    Args:
        separator: a regular expression for a whole line, without its end; None for a blank line.
            A line of `FILE_SEPARATOR` alone ends a document in any case.

    Raises:
        ValueError: `separator` is not a regular expression.
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
    """Finds the offset at which to cut.

    Args:
        window: the bytes from one multiple to the next.
        end_of_document: pattern from `document_end`.

    Returns:
        An offset in `window`, and whether it is inside a document.
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
    file: Reader, piece_bytes: int, end_of_document: re.Pattern[str]
) -> Iterator[Piece]:
    """Cuts a file into pieces, one after the other.

    Args:
        file: the file, read to its end; about three pieces of it are in memory.
        piece_bytes: bytes from one multiple to the next. A piece has fewer than 2.5 times as many:
            the last one includes a remainder of less than half of them.
        end_of_document: pattern from `document_end`.
    """
    buffer, begin, was_cut, number = b"", 0, False, 0
    while True:
        # The buffer begins at a multiple; the rest of the piece before it ends at `begin`.
        buffer += _read(file, 2 * piece_bytes - len(buffer))
        if 2 * len(buffer) < 3 * piece_bytes:
            yield Piece(buffer[begin:], number, was_cut)
            return
        place, is_cut = cut_place(buffer[piece_bytes : 2 * piece_bytes], end_of_document)
        yield Piece(buffer[begin : piece_bytes + place], number, was_cut or is_cut)
        buffer, begin, was_cut, number = buffer[piece_bytes:], place, is_cut, number + 1


def count_pieces(size: int, piece_bytes: int) -> int:
    """Returns the number of pieces of a text.

    Args:
        size: bytes of the text.
        piece_bytes: bytes from one multiple to the next, see `pieces`.
    """
    return max(1, (2 * size + piece_bytes) // (2 * piece_bytes))


def piece_at(
    file: BinaryIO, number: int, size: int, piece_bytes: int, end_of_document: re.Pattern[str]
) -> Piece:
    """Reads one piece of a file, the same as `pieces` finds.

    Args:
        file: a seekable file.
        number: index of the piece, from 0.
        size: bytes of the file.
        piece_bytes: bytes from one multiple to the next, see `pieces`.
        end_of_document: pattern from `document_end`.
    """
    is_last = number == count_pieces(size, piece_bytes) - 1
    file.seek(number * piece_bytes)
    content = _read(file, size - number * piece_bytes if is_last else 2 * piece_bytes)
    begin, was_cut = 0, False
    if number:
        begin, was_cut = cut_place(content[:piece_bytes], end_of_document)
    if is_last:
        return Piece(content[begin:], number, was_cut)
    place, is_cut = cut_place(content[piece_bytes : 2 * piece_bytes], end_of_document)
    return Piece(content[begin : piece_bytes + place], number, was_cut or is_cut)


def _read(file: Reader, count: int) -> bytes:
    """Reads `count` bytes, or all that are left: one call of `read` may return fewer."""
    found = []
    while count > 0 and (part := file.read(count)):
        found.append(part)
        count -= len(part)
    return b"".join(found)


class JoinedFiles:
    """Files, plain or gzipped, one after the other, with a line between them that ends a document.

    One of them is open at a time.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = list(paths)
        self._file: Any = None

    def read(self, size: int, /) -> bytes:
        """Reads at most `size` bytes; returns none only at the end.

        Raises:
            ValueError: a file is not gzip; the message names it.
        """
        while self._paths:
            if self._file is None:
                self._file = open_text(self._paths[0])
            if part := read_part(self._file, size, self._paths[0]):
                return part
            self.close()
            self._paths.pop(0)
            if self._paths:
                return _BETWEEN
        return b""

    def close(self) -> None:
        """Closes the file that is open."""
        if self._file is not None:
            self._file.close()
            self._file = None


def read_part(file: Reader, size: int, path: Path) -> bytes:
    """Reads at most `size` bytes of what `open_text` opened at `path`.

    Raises:
        ValueError: it is not gzip.
    """
    try:
        return file.read(size)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: the file must be gzip data. Received: {error}") from error

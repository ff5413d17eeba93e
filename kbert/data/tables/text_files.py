"""Readers of UTF-8 text files, plain or gzipped, line by line or whole."""

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

GZIP = ".gz"


def is_gzipped(path: str | os.PathLike[str]) -> bool:
    """Returns whether the name of a file ends in .gz."""
    return os.fspath(path).lower().endswith(GZIP)


def open_text(path: str | os.PathLike[str]) -> Any:
    """Opens a file for reading bytes, decompressed where its name ends in .gz."""
    return gzip.open(path, "rb") if is_gzipped(path) else open(path, "rb")


def text_lines(
    path: str | os.PathLike[str], stream: Iterable[bytes], encoding_errors: str | None = None
) -> Iterator[str]:
    r"""Yields the lines of a UTF-8 file with their ends, without a byte order mark.

    Only "\n" ends a line: str.splitlines would also split at U+2028 and U+0085 inside a text.
    `stream` holds the bytes, as from `open_text`; `path` is for messages. `encoding_errors` is
    "strict", or "replace" to read U+FFFD for bytes that are not UTF-8; None is "strict" where the
    user has no such choice. Raises a ValueError for invalid UTF-8, with the line, and for invalid
    gzip.
    """
    if encoding_errors not in (None, "strict", "replace"):
        raise ValueError(
            "`encoding_errors` must be 'strict' or 'replace'. Received: "
            f"encoding_errors={encoding_errors!r}"
        )
    errors = encoding_errors or "strict"
    number = 0
    try:
        for number, line in enumerate(stream, start=1):
            yield line.decode("utf-8-sig" if number == 1 else "utf-8", errors)
    except UnicodeDecodeError as error:
        hint = "Convert the file, or pass encoding_errors='replace'."
        if encoding_errors is None:
            hint = "Convert the file."
        if number == 1 and error.object.startswith((b"\xff\xfe", b"\xfe\xff")):
            hint = "It looks like UTF-16: convert the file."
        raise ValueError(
            f"{path}, line {number}: the file must be UTF-8. Received: byte "
            f"0x{error.object[error.start]:02x} ({error.reason}). {hint}"
        ) from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: the file must be gzip data. Received: {error}") from error


def read_text(path: str | os.PathLike[str], encoding_errors: str = "strict") -> str:
    """Reads a whole file, with the errors of `text_lines`."""
    with open_text(path) as stream:
        return "".join(text_lines(path, stream, encoding_errors))

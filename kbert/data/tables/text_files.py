"""Readers of text files, plain or gzipped."""

import gzip
import os
import zlib
from pathlib import Path
from typing import Any

GZIP = ".gz"


def open_text(path: str | os.PathLike[str]) -> Any:
    """Opens a file for reading bytes, decompressed where its name ends in .gz."""
    return gzip.open(path, "rb") if os.fspath(path).endswith(GZIP) else open(path, "rb")


def read_text(path: str | os.PathLike[str], encoding_errors: str = "strict") -> str:
    """Reads a UTF-8 file, without a byte order mark; decompresses it if its name ends in .gz.

    Args:
        path: the file.
        encoding_errors: "strict" or "replace".

    Raises:
        ValueError: invalid UTF-8 (the message names the line), invalid gzip, or another value of
            `encoding_errors`.
    """
    if encoding_errors not in ("strict", "replace"):
        raise ValueError(
            "`encoding_errors` must be 'strict' or 'replace'. Received: "
            f"encoding_errors={encoding_errors!r}"
        )
    content = Path(path).read_bytes()
    if os.fspath(path).endswith(GZIP):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path}: the file must be gzip data. Received: {error}") from error
    try:
        return content.decode("utf-8-sig", errors=encoding_errors)
    except UnicodeDecodeError as error:
        # The codec counts from after the byte order mark.
        start = error.start + (3 if content.startswith(b"\xef\xbb\xbf") else 0)
        line = content.count(b"\n", 0, start) + 1
        hint = "Convert the file, or pass encoding_errors='replace'."
        if content.startswith((b"\xff\xfe", b"\xfe\xff")):
            hint = "It looks like UTF-16: convert the file."
        raise ValueError(
            f"{path}, line {line}: the file must be UTF-8. Received: byte 0x{content[start]:02x} "
            f"({error.reason}). {hint}"
        ) from error

"""Checksums: the SHA-256 of a file or a folder, and the check of a file against a known one."""

import hashlib
import os
import re
from pathlib import Path

_CHUNK_BYTES = 1 << 18


def sha256_of(path: str | os.PathLike[str]) -> str:
    """Returns the SHA-256 of a file's bytes.

    Args:
        path: The file. It is read in pieces, so its size does not matter.

    Returns:
        64 lower-case hexadecimal digits.

    Raises:
        OSError: If `path` is no readable file.
    """
    digest = hashlib.sha256()
    with Path(path).open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def sha256_of_folder(path: str | os.PathLike[str]) -> str:
    """Returns one SHA-256 for all files of a folder, with their names, at any depth.

    Args:
        path: The folder.

    Returns:
        64 lower-case hexadecimal digits.

    Raises:
        OSError: If a file cannot be read.
    """
    folder = Path(path)
    digest = hashlib.sha256()
    for file in sorted(one for one in folder.rglob("*") if one.is_file()):
        digest.update(f"{sha256_of(file)} {file.relative_to(folder).as_posix()}\n".encode())
    return digest.hexdigest()


def verify_sha256(path: str | os.PathLike[str], expected: str) -> None:
    """Checks that a file has the SHA-256 that is known for it.

    Args:
        path: The file.
        expected: 64 hexadecimal digits.

    Raises:
        ValueError: If `expected` is no SHA-256, or the file has another one.
        OSError: If `path` is no readable file.
    """
    if not re.fullmatch(r"[0-9a-fA-F]{64}", expected):
        raise ValueError(
            f"`expected` must be 64 hexadecimal digits. Received: expected={expected!r}"
        )
    found = sha256_of(path)
    if found != expected.lower():
        raise ValueError(
            f"`{path}` must have the SHA-256 {expected.lower()}: the file is damaged, or it is "
            f"another one. Received: sha256={found}"
        )

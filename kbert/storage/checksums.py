"""SHA-256 of files, of folders and of samples of large files."""

import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path

_MOST_BYTES = 1 << 28  # of all files together, read at each start of a run
_LEAST_BYTES, _PIECE = 1 << 16, 1 << 12  # of one file, and of one sample of it


def sha256_of(path: str | os.PathLike[str]) -> str:
    """Returns the SHA-256 of a file's bytes as 64 lower-case hexadecimal digits."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_folder(path: str | os.PathLike[str]) -> str:
    """Returns one SHA-256 for all files of a folder, with their names, at any depth."""
    folder = Path(path)
    digest = hashlib.sha256()
    for file in sorted(one for one in folder.rglob("*") if one.is_file()):
        digest.update(f"{sha256_of(file)} {file.relative_to(folder).as_posix()}\n".encode())
    return digest.hexdigest()


def verify_sha256(path: str | os.PathLike[str], expected: str) -> None:
    """Raises a ValueError if `expected` is no SHA-256, or a file has another one."""
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


def sampled_hashes(files: Sequence[Path], most_bytes: int = _MOST_BYTES) -> list[str]:
    """Hashes files by their size and contents: the SHA-256 of each, in hexadecimal.

    If the files are larger than `most_bytes` together, each is sampled at offsets that are evenly
    spread over it, at least 64 KiB; a change between these that keeps the size is not detected.
    """
    share = max(_LEAST_BYTES, most_bytes // max(len(files), 1))
    is_small = sum(file.stat().st_size for file in files) <= most_bytes
    return [
        sha256_of(file) if is_small or file.stat().st_size <= share else _sampled(file, share)
        for file in files
    ]


def _sampled(file: Path, share: int) -> str:
    """Hashes the size and about `share` bytes, the first and the last ones among them."""
    size, pieces = file.stat().st_size, share // _PIECE
    digest = hashlib.sha256(str(size).encode())
    with file.open("rb") as stream:
        for number in range(pieces):
            stream.seek(number * (size - _PIECE) // (pieces - 1))
            digest.update(stream.read(_PIECE))
    return digest.hexdigest()

"""What large files hold, told by samples: whether they are the same ones as before."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from kbert.storage.checksums import sha256_of

_MOST_BYTES = 1 << 28  # of all files together, read at each start of a run
_LEAST_BYTES, _PIECE = 1 << 16, 1 << 12  # of one file, and of one place in it


def sampled_hashes(files: Sequence[Path], most_bytes: int = _MOST_BYTES) -> list[str]:
    """Hashes files by their size and contents.

    Where they are larger than `most_bytes` together, each is looked at in places that are evenly
    spread over it; a change between these that keeps the size goes unnoticed.

    Args:
        files: the files.
        most_bytes: about how much of all files is read, and at least 64 KiB of each.

    Returns:
        A SHA-256 each, in hexadecimal.
    """
    share = max(_LEAST_BYTES, most_bytes // max(len(files), 1))
    is_small = sum(file.stat().st_size for file in files) <= most_bytes
    return [
        sha256_of(file) if is_small or file.stat().st_size <= share else _sampled(file, share)
        for file in files
    ]


def _sampled(file: Path, share: int) -> str:
    """A hash of the size and of so many bytes, the first and the last ones among them."""
    size, pieces = file.stat().st_size, share // _PIECE
    digest = hashlib.sha256(str(size).encode())
    with file.open("rb") as stream:
        for number in range(pieces):
            stream.seek(number * (size - _PIECE) // (pieces - 1))
            digest.update(stream.read(_PIECE))
    return digest.hexdigest()

"""What large files hold, told by samples: whether they are the same ones as before."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

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
    return [_hash(file, None if is_small else share) for file in files]


def _hash(file: Path, share: int | None) -> str:
    size = file.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with file.open("rb") as stream:
        for place, length in _places(size, share):
            stream.seek(place)
            digest.update(stream.read(length))
    return digest.hexdigest()


def _places(size: int, share: int | None) -> Iterator[tuple[int, int]]:
    """Where to read how many bytes: first and last ones among them."""
    if share is None or size <= share:
        yield from ((place, _LEAST_BYTES) for place in range(0, size, _LEAST_BYTES))
        return
    pieces = share // _PIECE
    for number in range(pieces):
        yield number * (size - _PIECE) // (pieces - 1), _PIECE

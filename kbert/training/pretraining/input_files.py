"""Finds the files of a configuration's names and glob patterns."""

import glob
from collections.abc import Sequence
from pathlib import Path

ELSEWHERE = "://"


def found_files(key: str, patterns: Sequence[str]) -> list[Path]:
    """Returns the files that match names and patterns, each once.

    Args:
        patterns: Names of files, or patterns with `*`, `?`, `[...]` and `**`; the files of a
            pattern are sorted.

    Raises:
        FileNotFoundError: One matches no file.
        ValueError: One is not on this machine's disks.
    """
    found: dict[Path, None] = {}
    for pattern in patterns:
        if ELSEWHERE in pattern:
            raise ValueError(
                f"`{key}` must be files of this machine: only records are read from elsewhere. "
                f"Received: {pattern!r}"
            )
        # A file may have a star in its name.
        names = [pattern] if Path(pattern).exists() else sorted(glob.glob(pattern, recursive=True))
        files = [Path(name) for name in names if not Path(name).is_dir()]
        if not files:
            raise no_file(key, pattern)
        found.update(dict.fromkeys(files))
    return list(found)


def no_file(key: str, pattern: str) -> FileNotFoundError:
    """Returns the error for a pattern that matches no file."""
    folder = ", which is a folder" if ELSEWHERE not in pattern and Path(pattern).is_dir() else ""
    return FileNotFoundError(
        f"`{key}` must be files, or patterns that match some. Received: {pattern!r}{folder}"
    )

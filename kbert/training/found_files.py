"""The files that names and patterns of a configuration stand for."""

import glob
from collections.abc import Sequence
from pathlib import Path

import tensorflow as tf

_ELSEWHERE = "://"


def found_files(key: str, patterns: Sequence[str]) -> list[Path]:
    """Returns the files that names and patterns stand for, each once.

    Args:
        key: What the patterns are, for the message.
        patterns: Names of files, or patterns with `*`, `?`, `[...]` and `**`; the files of a
            pattern are sorted.

    Raises:
        FileNotFoundError: One stands for no file.
        ValueError: One is of another place than this machine's disks.
    """
    found: dict[Path, None] = {}
    for pattern in patterns:
        if _ELSEWHERE in pattern:
            raise ValueError(
                f"`{key}` must be files of this machine: only records are read from elsewhere. "
                f"Received: {pattern!r}"
            )
        # A file may have a star in its name.
        names = [pattern] if Path(pattern).exists() else sorted(glob.glob(pattern, recursive=True))
        files = [Path(name) for name in names if not Path(name).is_dir()]
        if not files:
            raise _no_file(key, pattern)
        found.update(dict.fromkeys(files))
    return list(found)


def found_records(key: str, patterns: Sequence[str]) -> list[str]:
    """Returns the TFRecords that names and patterns stand for, each once.

    Args:
        key: What the patterns are, for the message.
        patterns: As of `found_files`; or, with a "://" in them, what `tf.io.gfile` finds, in a
            bucket for example: names, or patterns with `*` and `?` within a folder.

    Raises:
        FileNotFoundError: One stands for no file.
        OSError: Its place cannot be reached.
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        if _ELSEWHERE not in pattern:
            found.update(dict.fromkeys(map(str, found_files(key, [pattern]))))
            continue
        try:
            is_name = tf.io.gfile.exists(pattern)
            names = [pattern] if is_name else sorted(tf.io.gfile.glob(pattern))
            files = [name for name in names if not tf.io.gfile.isdir(name)]
        except tf.errors.OpError as error:
            raise OSError(
                f"`{key}` must be in places that can be reached. Received: {pattern!r}. "
                f"{' '.join(error.message.split())}"
            ) from error
        if not files:
            raise _no_file(key, pattern)
        found.update(dict.fromkeys(files))
    return list(found)


def _no_file(key: str, pattern: str) -> FileNotFoundError:
    folder = ", which is a folder" if _ELSEWHERE not in pattern and Path(pattern).is_dir() else ""
    return FileNotFoundError(
        f"`{key}` must be files, or patterns that match some. Received: {pattern!r}{folder}"
    )

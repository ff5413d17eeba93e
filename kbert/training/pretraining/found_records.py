"""Finds the TFRecords of a configuration's names and glob patterns, also in a bucket."""

from collections.abc import Sequence

import tensorflow as tf

from kbert.training.pretraining.input_files import ELSEWHERE, found_files, no_file


def found_records(key: str, patterns: Sequence[str]) -> list[str]:
    """Returns the TFRecords that match names and patterns, each once.

    Args:
        key: The option of the patterns, for the error message.
        patterns: Names or patterns for `found_files`; or, with a "://" in them, for `tf.io.gfile`,
            in a bucket for example: names, or patterns with `*` and `?` within a folder.

    Raises:
        FileNotFoundError: One matches no file.
        OSError: Its storage cannot be reached.
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        if ELSEWHERE not in pattern:
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
            raise no_file(key, pattern)
        found.update(dict.fromkeys(files))
    return list(found)

"""The TFRecords that names and patterns of a configuration stand for, also in a bucket."""

from collections.abc import Sequence

import tensorflow as tf

from kbert.training.pretraining.input_files import ELSEWHERE, found_files, no_file


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

"""The requests that a server runs when it loads an export: tf_serving_warmup_requests.

A process's work at its first request (memory, kernels, threads) is then done before any client
waits. A record that fails makes the loading fail, so the file tests the export too. Source:
tensorflow/serving, `g3doc/saved_model_warmup.md` and `saved_model_warmup_util.cc`.
"""

import os
from collections.abc import Iterable
from pathlib import Path

import tensorflow as tf

from kbert.serving.format.prediction_log import PredictRequest, decode_request, encode_request

WARMUP_FILE = Path("assets.extra", "tf_serving_warmup_requests")
# A server refuses an export with more.
MAX_RECORDS = 1000


def write_warmup(export_dir: str | os.PathLike[str], requests: Iterable[PredictRequest]) -> int:
    """Writes the requests of a version folder.

    Args:
        export_dir: The folder.
        requests: At most 1,000.

    Returns:
        Their number.

    Raises:
        ValueError: There are more.
    """
    records = [encode_request(request) for request in requests]
    if len(records) > MAX_RECORDS:
        raise ValueError(
            f"`requests` must be at most {MAX_RECORDS}: a server loads no more. "
            f"Received: {len(records)}"
        )
    file = Path(export_dir) / WARMUP_FILE
    file.parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(file)) as writer:
        for record in records:
            writer.write(record)
    return len(records)


def read_warmup(export_dir: str | os.PathLike[str]) -> list[PredictRequest] | None:
    """Reads the requests of a version folder.

    Args:
        export_dir: The folder.

    Returns:
        The requests in order, or None where there is no file.

    Raises:
        ValueError: The file is damaged, or a record is not a predict request.
    """
    file = Path(export_dir) / WARMUP_FILE
    if not file.is_file():
        return None
    try:
        records = list(tf.data.TFRecordDataset(str(file)).as_numpy_iterator())
    except tf.errors.DataLossError as error:
        raise ValueError(f"`{file}` must be a TFRecord file. Received: {error.message}") from error
    return [decode_request(record) for record in records]

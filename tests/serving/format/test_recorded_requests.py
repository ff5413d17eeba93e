"""The file of the warm-up."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from kbert.serving.format.recorded_requests import (
    MAX_RECORDS,
    WARMUP_FILE,
    OtherRecord,
    PredictRequest,
    encode_request,
    read_warmup,
    write_warmup,
)


def requests(count: int) -> list[PredictRequest]:
    return [
        PredictRequest("m", "serving_default", {"text": np.array([str(i).encode()], object)})
        for i in range(count)
    ]


def test_what_is_written_is_read(tmp_path: Path):
    assert read_warmup(tmp_path) is None
    assert write_warmup(tmp_path, requests(3)) == 3
    # Where TF Serving looks for it.
    assert WARMUP_FILE.as_posix() == "assets.extra/tf_serving_warmup_requests"
    found = read_warmup(tmp_path)
    assert found is not None
    assert [one.inputs["text"].tolist() for one in found] == [[b"0"], [b"1"], [b"2"]]


def test_at_most_as_many_as_a_server_loads(tmp_path: Path):
    assert MAX_RECORDS == 1000
    with pytest.raises(ValueError, match="`requests` must be at most 1000.*Received: 1001"):
        write_warmup(tmp_path, requests(1001))
    assert not (tmp_path / WARMUP_FILE).exists()


def test_a_damaged_file_is_refused(tmp_path: Path):
    write_warmup(tmp_path, requests(2))
    file = tmp_path / WARMUP_FILE
    content = bytearray(file.read_bytes())
    content[20] ^= 1
    file.write_bytes(content)
    with pytest.raises(ValueError, match="must be a TFRecord file"):
        read_warmup(tmp_path)
    with tf.io.TFRecordWriter(str(file)) as writer:
        writer.write(b"no message")
    with pytest.raises(ValueError, match="must be a PredictionLog"):
        read_warmup(tmp_path)


def test_records_of_other_kinds_are_left_out_where_they_may_be(tmp_path: Path):
    write_warmup(tmp_path, requests(1))
    (request,) = requests(1)
    file = tmp_path / WARMUP_FILE
    with tf.io.TFRecordWriter(str(file)) as writer:
        writer.write(b"\x12\x02\x0a\x00")
        writer.write(encode_request(request))
    with pytest.raises(OtherRecord, match="with a predict request. Received: classify_log"):
        read_warmup(tmp_path)
    (found,) = read_warmup(tmp_path, skip_others=True) or []
    assert found.inputs["text"].tolist() == [b"0"]
    with tf.io.TFRecordWriter(str(file)) as writer:
        writer.write(b"no message")
    with pytest.raises(ValueError, match="must be a PredictionLog"):
        read_warmup(tmp_path, skip_others=True)

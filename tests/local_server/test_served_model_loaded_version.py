"""A version in memory: its warm-up has run."""

from pathlib import Path

import pytest
import tensorflow as tf

from kbert.local_server.served_model import LoadedVersion
from kbert.serving.format.recorded_requests import WARMUP_FILE, read_warmup, write_warmup


def test_it_knows_what_the_export_says(meter: Path):
    version = LoadedVersion(7, meter)
    assert version.number == 7 and version.about["name"] == "meter"
    assert version.batching is None and version.model.joins_requests


def test_a_warm_up_that_fails_makes_the_loading_fail(meter: Path):
    records = read_warmup(meter)
    assert records is not None
    for record in records:
        object.__setattr__(record, "signature", "gone")
    write_warmup(meter, records)
    with pytest.raises(RuntimeError, match="warm-up request 1 fails: 'gone'"):
        LoadedVersion(1, meter)
    (meter / WARMUP_FILE).unlink()
    assert LoadedVersion(1, meter).queue is None


def test_a_warm_up_without_a_name_is_for_the_main_signature(meter: Path):
    records = read_warmup(meter)
    assert records is not None
    main = [record for record in records if record.signature == "serving_default"]
    for record in main:
        object.__setattr__(record, "signature", "")
    write_warmup(meter, main)
    assert LoadedVersion(1, meter).number == 1


def test_a_warm_up_with_requests_of_other_kinds(meter: Path, caplog: pytest.LogCaptureFixture):
    """TF Serving loads such a model of another origin."""
    file = meter / WARMUP_FILE
    records = list(tf.data.TFRecordDataset(str(file)).as_numpy_iterator())
    with tf.io.TFRecordWriter(str(file)) as writer:
        for record in [b"\x12\x02\x0a\x00", *records, b"\x1a\x02\x0a\x00"]:  # classify, regress
            writer.write(record)
    assert LoadedVersion(1, meter).number == 1
    (told,) = caplog.messages
    count = len(records) + 2
    assert told == f"{file}: 2 of {count} records are not run: they are no predict requests."

"""Faults of what lies beside a SavedModel, each planted and found."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from kbert.export_check.bundle_checks import Bundle, bundle_checks
from kbert.serving.format.recorded_requests import (
    WARMUP_FILE,
    PredictRequest,
    read_warmup,
    write_warmup,
)
from kbert.serving.format.signatures import read_meta_graph, signatures_of


def read(folder: Path) -> Bundle:
    meta_graph = read_meta_graph(folder)
    written = meta_graph.meta_info_def.tensorflow_version
    return bundle_checks(folder, signatures_of(meta_graph), written)


def problems(folder: Path) -> dict[str, tuple[str, ...]]:
    """Name of each check that failed -> what it found."""
    return {one.name: one.problems for one in read(folder).checks if one.problems}


def edit(folder: Path, change: Callable[[Any], None]) -> Path:
    """Changes kbert.json."""
    file = folder / "assets.extra" / "kbert.json"
    metadata = json.loads(file.read_text())
    change(metadata)
    file.write_text(json.dumps(metadata))
    return folder


def test_a_good_bundle_has_none(meter: Path):
    bundle = read(meter)
    assert [(one.name, one.status) for one in bundle.checks] == [
        ("metadata", "passed"),
        ("batching", "passed"),
        ("warmup", "passed"),
        ("golden_file", "passed"),
    ]
    # Of each signature one of a short, a middling and a long row, and one of four.
    assert len(bundle.warmup) == 2 * (3 + 1)
    assert bundle.checks[1].note == "the graph joins requests to batches of 4 rows"
    assert bundle.golden is not None and len(bundle.golden) == 2


def test_a_saved_model_alone(meter: Path):
    for file in (meter / "assets.extra").iterdir():
        file.unlink()
    bundle = read(meter)
    assert {one.status for one in bundle.checks} == {"skipped"}
    assert {one.skipped for one in bundle.checks} == {"the export has no bundle of kbert"}


@pytest.mark.parametrize(
    "file, check, message",
    [
        ("assets.extra/tf_serving_warmup_requests", "warmup", "tf_serving_warmup_requests is miss"),
        ("assets.extra/golden_answers.json", "golden_file", "golden_answers.json is missing."),
    ],
)
def test_a_missing_and_a_damaged_file(meter: Path, file: str, check: str, message: str):
    (meter / file).unlink()
    found = problems(meter)
    assert list(found) == [check] and message in found[check][0]
    (meter / file).write_bytes(b"\x01 nothing that fits")
    assert check in problems(meter)


def test_metadata_of_another_export(meter: Path):
    def change(metadata: Any) -> None:
        metadata["version"] = 7
        metadata["tensorflow_version"] = "2.16.1"
        metadata["weights"]["parameters"] += 1
        metadata["graph_bytes"] += 1
        metadata["signatures"]["tokens"]["inputs"][0]["dtype"] = "int64"
        metadata["signatures"]["more"] = {"inputs": [], "outputs": []}

    (told,) = problems(edit(meter, change)).values()
    assert [line.split(" ")[0] for line in told] == ["assets.extra/kbert.json"] * 6
    assert "differ in the signature 'more'" in told[0]
    assert "differ in the signature 'tokens'" in told[1]
    assert "says version=7; it is 1." in told[2]
    assert "says tensorflow_version='2.16.1'; it is '2.20.0'." in told[3]
    assert "graph_bytes=" in told[4] and "weights=" in told[5]
    (meter / "assets.extra" / "kbert.json").write_text("[]")
    assert "is damaged" in problems(meter)["metadata"][0]
    (meter / "assets.extra" / "kbert.json").unlink()
    assert problems(meter)["metadata"] == (
        "assets.extra/kbert.json is missing beside golden_answers.json.",
    )


def test_a_file_that_joins_requests_before_they_are_checked(meter: Path):
    """As earlier exports have it; one of another rank then ends TF Serving."""
    file = meter / "batching_params.pbtxt"
    file.write_text("max_batch_size { value: 4 } pad_variable_length_inputs: true")
    (told,) = problems(meter)["batching"]
    assert "pad_variable_length_inputs, one of another rank beside good ones ends the" in told
    file.write_text("max_batch_size { value: 4 }")
    (told,) = problems(meter)["batching"]
    assert "one of another rank fails all that share its batch" in told
    file.write_text("max_batch_size { value: 4 } allowed_batch_sizes: 5")
    assert "must rise to max_batch_size=4" in problems(meter)["batching"][0]


def test_the_file_of_a_model_by_others(meter: Path):
    """It has no checks that a server's own batching would go round; padding is not for any."""
    for file in (meter / "assets.extra").iterdir():
        file.unlink()
    (meter / "batching_params.pbtxt").write_text("max_batch_size { value: 4 }")
    assert problems(meter) == {}
    (meter / "batching_params.pbtxt").write_text("pad_variable_length_inputs: true")
    assert list(problems(meter)) == ["batching"]


def request(text: Any, signature: str = "serving_default", name: str = "text") -> PredictRequest:
    return PredictRequest("meter", signature, {name: text})


def test_records_that_do_not_fit(meter: Path):
    good = read_warmup(meter) or []
    strings = np.array([b"a"], object)
    wrong = [
        request(strings, signature="other"),
        request(strings, name="texts"),
        request(np.array([1.0])),
        request(np.array([[b"a"]], object)),
    ]
    write_warmup(meter, [*good, *wrong])
    bundle = read(meter)
    (told,) = [one.problems for one in bundle.checks if one.name == "warmup"]
    assert told == (
        "Record 9: there is no signature 'other'.",
        "Record 10: the inputs are ['texts'] instead of ['text'].",
        "Record 11: 'text' is of float64 instead of string.",
        "Record 12: 'text' has the shape (1, 1), of 1 row(s).",
    )
    assert len(bundle.warmup) == len(good)  # the others are run all the same


def test_sizes_without_a_record_and_too_many_records(meter: Path):
    good = [one for one in read_warmup(meter) or [] if one.rows != 4]
    write_warmup(meter, good)
    told = problems(meter)["warmup"]
    assert told == (
        "The signature 'serving_default' has no record of [4] row(s).",
        "The signature 'tokens' has no record of [4] row(s).",
    )
    record = next(tf.data.TFRecordDataset(str(meter / WARMUP_FILE)).as_numpy_iterator())
    with tf.io.TFRecordWriter(str(meter / WARMUP_FILE)) as writer:
        for _ in range(1001):
            writer.write(record)
    assert "There are 1001 records; a server loads at most 1000." in problems(meter)["warmup"]


def test_a_signature_without_a_golden_answer(meter: Path):
    file = meter / "assets.extra" / "golden_answers.json"
    file.write_text(json.dumps(json.loads(file.read_text())[:1]))
    assert problems(meter)["golden_file"] == ("The signature 'tokens' has no golden answer.",)

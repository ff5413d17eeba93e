"""Requests run in Python and without it, and what is found where answers are wrong."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from kbert.export_check import bundle_checks as replay
from kbert.export_check.bundle_checks import Replay, bundle_checks
from kbert.export_check.report import Check
from kbert.serving.format.signatures import read_meta_graph, signatures_of
from tests.c_compiler import needs_compiler


def run(folder: Path, programs: Path) -> dict[str, Check]:
    signatures = signatures_of(read_meta_graph(folder))
    bundle = bundle_checks(folder, signatures, "2.20.0")
    return {one.name: one for one in Replay(folder, programs).checks(bundle)}


@needs_compiler
def test_a_good_export(meter: Path, programs: Path):
    found = run(meter, programs)
    assert {name: one.status for name, one in found.items()} == {
        "python_run": "passed",
        "session_run": "passed",
        "same_answers": "passed",
        "golden_answers": "passed",
        "bad_requests": "passed",
    }
    assert found["session_run"].note == "10 requests"


def test_without_a_compiler(meter: Path, programs: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    found = run(meter, programs)
    assert found["python_run"].status == found["golden_answers"].status == "passed"
    assert found["session_run"].status == found["same_answers"].status == "skipped"
    assert "A C compiler is needed" in found["session_run"].skipped


@needs_compiler
def test_golden_answers_that_are_not_given(meter: Path, programs: Path):
    file = meter / "assets.extra" / "golden_answers.json"
    golden = json.loads(file.read_text())
    golden[0]["response"]["outputs"]["label"][1] = "long"  # of four words
    golden[1]["response"]["outputs"]["weight"][0] += 1.0
    file.write_text(json.dumps(golden))
    found = run(meter, programs)
    told = found["golden_answers"].problems
    assert len(told) == 4  # each in Python and without
    begins = "the golden request to "
    assert told[1].startswith(f"In the C++ loader, {begins}'serving_default': 'label' is")
    assert told[2].startswith(f"In Python, {begins}'tokens': 'weight' is off by up to 1,")
    assert found["python_run"].status == found["same_answers"].status == "passed"


@needs_compiler
def test_other_weights(meter: Path, programs: Path):
    """Weights that were exchanged after the export: nothing but the golden answers can tell."""
    prefix = str(meter / "variables" / "variables")
    loaded: Any = tf.saved_model.load(str(meter))
    weight = loaded.signatures["serving_default"].variables[0]
    weight.assign(weight * 2.0)
    (name,) = [n for n, _ in tf.train.list_variables(prefix) if "VARIABLE_VALUE" in n]
    graph = tf.train.load_checkpoint(prefix).get_tensor("_CHECKPOINTABLE_OBJECT_GRAPH")
    tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=["_CHECKPOINTABLE_OBJECT_GRAPH", name],
        shape_and_slices=["", ""],
        tensors=[tf.constant(graph), weight.read_value()],
    )
    for file in (meter / "variables").glob("*.data-*"):
        file.rename(meter / "variables" / "variables.data-00000-of-00001")
    found = run(meter, programs)
    assert found["python_run"].status == found["session_run"].status == "passed"
    assert "'scores' is off by" in " ".join(found["golden_answers"].problems)


@needs_compiler
def test_an_export_that_cannot_be_loaded(meter: Path, programs: Path):
    data = meter / "variables" / "variables.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:100])
    found = run(meter, programs)
    assert found["python_run"].problems[0].startswith("Python cannot load the export: ")
    assert found["session_run"].problems[0].startswith("The C++ loader cannot load the export: ")


@needs_compiler
def test_answers_that_differ_without_python(
    meter: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
):
    class Other(replay.Session):
        def run(self, signature: str, inputs: Any) -> dict[str, np.ndarray]:
            answers = super().run(signature, inputs)
            if "scores" in answers:
                answers["scores"] = answers["scores"] + np.float32(0.01)
            return answers

    monkeypatch.setattr(replay, "Session", Other)
    found = run(meter, programs)
    told = found["same_answers"].problems
    assert told[0] == (
        "warm-up record 1: without Python 'scores' is off by up to 0.01, more than 0.0001."
    )
    assert "In the C++ loader" in found["golden_answers"].problems[0]


def test_a_request_that_fails_and_rows_that_are_lost(
    meter: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
):
    class Faulty(replay.LoadedModel):
        def run(self, signature: str, inputs: Any) -> dict[str, np.ndarray]:
            if signature == "tokens":
                raise RuntimeError("out of\nmemory")
            return {"length": np.zeros((7,), np.int32)}

    monkeypatch.setattr(replay, "LoadedModel", Faulty)
    monkeypatch.setenv("CC", "no-such-compiler")
    told = run(meter, programs)["python_run"].problems
    assert told[0] == "warm-up record 1: 'length' has the shape (7,) for 1 row(s)."
    assert "warm-up record 6 fails: RuntimeError: out of memory" in told

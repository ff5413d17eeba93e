"""Answers that are kept, and how answers are compared."""

import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from kbert.serving.format.recorded_requests import (
    GOLDEN_FILE,
    GoldenAnswer,
    differences,
    read_golden,
    write_golden,
)
from kbert.serving.format.signatures import Signature, SignatureTensor

SIGNATURES = {
    "f": Signature(
        {"text": SignatureTensor("t:0", tf.string, (None,))},
        {
            "label": SignatureTensor("l:0", tf.string, (None,)),
            "score": SignatureTensor("s:0", tf.float32, (None, None)),
        },
    )
}
ANSWER = GoldenAnswer(
    "f",
    {"text": np.array([b"a", b"\xff"], object)},
    {"label": np.array([b"yes", b"no"], object), "score": np.array([[0.25], [np.nan]], "float32")},
    1e-4,
)


def test_what_is_written_is_read(tmp_path: Path):
    assert read_golden(tmp_path, SIGNATURES) is None
    write_golden(tmp_path, [ANSWER])
    (found,) = read_golden(tmp_path, SIGNATURES) or []
    assert found.signature == "f" and found.tolerance == 1e-4
    assert found.inputs["text"].tolist() == [b"a", b"\xff"]
    assert differences(found.outputs, ANSWER.outputs, 0.0) == []
    # A request as TF Serving's REST interface takes it.
    (written,) = json.loads((tmp_path / GOLDEN_FILE).read_text())
    assert written["request"] == {
        "signature_name": "f",
        "inputs": {"text": ["a", {"b64": "/w=="}]},
    }
    assert written["response"]["outputs"]["label"] == ["yes", "no"]


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[1]",
        '[{"request": {"signature_name": "g", "inputs": {}}, "response": {"outputs": {}}}]',
        '[{"request": {"signature_name": "f", "inputs": {"x": [1]}}, "response": {"outputs": {}}}]',
        '[{"request": {"signature_name": "f", "inputs": {}}, "response": {}}]',
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, content: str):
    (tmp_path / GOLDEN_FILE).parent.mkdir()
    (tmp_path / GOLDEN_FILE).write_text(content)
    with pytest.raises(ValueError, match="must hold requests to the signatures"):
        read_golden(tmp_path, SIGNATURES)


def test_differences():
    x = np.array([1.0, 2.0], np.float32)
    assert differences({"x": x}, {"x": x + 5e-5}, 1e-4) == []
    (told,) = differences({"x": x}, {"x": x + np.array([0, 0.5], "f")}, 1e-4)
    assert told == "'x' is off by up to 0.5, more than 0.0001"
    (told,) = differences({"x": x}, {"y": x}, 1e-4)
    assert told == "the outputs are ['x'] instead of ['y']"
    (told,) = differences({"x": x}, {"x": x[:1]}, 1e-4)
    assert told == "'x' has the shape (2,) instead of (1,)"
    texts = np.array([b"a", b"b"], object)
    (told,) = differences({"x": texts}, {"x": np.array([b"a", b"c"], object)}, 1e9)
    assert told == "'x' is b'b' instead of b'c' at (1,)"
    (told,) = differences({"x": np.array([3])}, {"x": np.array([4])}, 1e9)
    assert told == "'x' is 3 instead of 4 at (0,)"
    assert differences({"x": np.array([np.nan])}, {"x": np.array([0.0])}, 1.0) != []

"""A benchmark that lacks a peer is passed over; one that is broken is not."""

import pytest

from tests.benchmark_output import broken_contenders, lacks_a_package


@pytest.mark.parametrize(
    "error",
    [
        "ModuleNotFoundError: No module named 'torch'",
        "peers/bin/python: No module named 'transformers.models'",
        "BLEU needs sacrebleu. Install it with `pip install sacrebleu`.",
        "Any older a.json is kept. Not run: kbert ONNX (No module named 'onnxruntime')",
    ],
)
def test_a_package_of_an_extra_may_be_missing(error: str):
    assert lacks_a_package(error)


@pytest.mark.parametrize(
    "error",
    [
        "ModuleNotFoundError: No module named 'kbert.models.gone'",
        "/usr/bin/python: No module named contenders.kbert_gone",
        "ModuleNotFoundError: No module named 'side_by_side'",
        "No module named 'torch'\nNo module named 'peers'\n`pip install kbert-tf[bench]`",
        "KeyError: 'rows'",
    ],
)
def test_a_part_of_the_benchmarks_may_not(error: str):
    assert not lacks_a_package(error)


def test_contenders_that_are_broken():
    """One of kbert by any fault of its own; a peer where its program is not there."""
    output = """\
round 1 of 5
kbert float32 was not run: TypeError: no such argument
kbert ONNX float32 was not run: ModuleNotFoundError: No module named 'onnxruntime'
transformers was not run: ModuleNotFoundError: No module named 'torch'
FastAPI was not run: RuntimeError: ended
keras-hub was not run: No module named peers.keras_gone
"""
    assert broken_contenders(output) == [
        "kbert float32: TypeError: no such argument",
        "keras-hub: No module named peers.keras_gone",
    ]
    assert not broken_contenders("round 1 of 1\n")

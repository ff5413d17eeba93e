"""A SavedModel in Python, with and without what kbert writes beside it."""

import shutil
from pathlib import Path

import pytest

from kbert.serving.loading.exported import LoadedModel


def test_it_needs_nothing_but_the_saved_model(meter: Path):
    shutil.rmtree(meter / "assets.extra")
    model = LoadedModel(meter)
    assert set(model.signatures) == {"serving_default", "tokens"}
    found = model.run("serving_default", {"text": ["a", b"\xff\0", "x" * 21]})
    assert found["length"].tolist() == [1, 2, 21]
    assert found["label"].tolist() == [b"short", b"short", b"long"]


def test_faults_are_told(meter: Path):
    model = LoadedModel(meter)
    with pytest.raises(KeyError, match="other"):
        model.run("other", {"text": ["a"]})
    with pytest.raises(ValueError, match=r"`inputs\['text'\]` must have 1 dimension"):
        model.run("serving_default", {"text": [["a"]]})
    with pytest.raises(FileNotFoundError, match="must hold saved_model.pb"):
        LoadedModel(meter / "variables")

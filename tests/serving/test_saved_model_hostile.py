"""Hostile strings against exports: no fault of any kind, and no answer outside its own text."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbert.serving.exported import Exported, load_export
from kbert.serving.saved_model import export
from tests.pipelines.awkward_texts import awkward_texts
from tests.serving.hostile_strings import FAMILIES, faults, hostile_strings
from tests.small_pipelines import (
    small_entity_recognizer,
    small_masked_language_model,
    small_question_answerer,
)

MODELS = {
    "answers": small_question_answerer,
    "names": small_entity_recognizer,
    "words": small_masked_language_model,
}


@pytest.fixture(scope="module", params=list(MODELS))
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """An export of each kind that says where in a text something stands."""
    base: Path = tmp_path_factory.mktemp("hostile")
    return load_export(export(MODELS[request.param](), base, request.param, max_batch_size=1))


def asked(found: Exported, rows: list[tuple[Any, Any]]) -> list[str]:
    """The faults of the answers of all signatures that read texts."""
    told = []
    for signature in found.metadata["signatures"]:
        names = found.input_names(signature)
        inputs = {name: [row[-1 - i] for row in rows] for i, name in enumerate(reversed(names))}
        told += list(faults(inputs, found.run(inputs, signature)))
    return told


@settings(max_examples=25, deadline=None)
@given(rows=st.lists(st.tuples(awkward_texts, awkward_texts), min_size=1, max_size=6))
def test_awkward_texts(found: Exported, rows: list[tuple[Any, Any]]):
    encoded = [tuple(t.encode() if isinstance(t, str) else t for t in row) for row in rows]
    assert asked(found, encoded) == []


def test_all_families(found: Exported):
    texts = list(hostile_strings(10 * len(FAMILIES), seed=5))
    assert asked(found, list(zip(texts[::-1], texts))) == []


def test_the_strings_are_hostile_and_the_same_again():
    strings = list(hostile_strings(200, seed=1, large=2))
    assert strings == list(hostile_strings(200, seed=1, large=2))
    assert sum(len(text) == 1_000_000 for text in strings) == 2
    assert any(b"\0" in text for text in strings) and any(b"[CLS]" in text for text in strings)
    broken = 0
    for text in strings:
        try:
            text.decode()
        except UnicodeDecodeError:
            broken += 1
    assert 30 < broken < 150


@pytest.mark.parametrize(
    "changed, fault",
    [
        ({"answer": b"good"}, "not what its text has there"),
        ({"end": 99}, "outside its text"),
        ({"end_byte": 3}, "not the bytes that its text has there"),
        ({"score": np.nan}, "score is not finite"),
    ],
)
def test_faults_are_found(changed: dict[str, Any], fault: str):
    # "é" has one code point and two bytes.
    right = {"answer": b"film", "score": 0.5, "start": 2, "end": 6, "start_byte": 3, "end_byte": 7}
    inputs = {"question": [b""], "context": ["é film".encode()]}
    nothing = {f"nbest_{key}": np.zeros((1, 0)) for key in ("answer", "start", "end")}

    def outputs(row: dict[str, Any]) -> dict[str, np.ndarray]:
        return {**{key: np.array([value]) for key, value in row.items()}, **nothing}

    assert list(faults(inputs, outputs(right))) == []
    (told,) = faults(inputs, outputs({**right, **changed}))
    assert fault in told

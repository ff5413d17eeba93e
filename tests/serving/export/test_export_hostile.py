"""Hostile strings against exports: no fault of any kind, and no answer outside its own text.

Models that read are asked in test_saved_model_reading, which has their exports.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbert.serving.loading.exported import Exported
from tests.pipelines.awkward_texts import awkward_texts
from tests.serving.hostile_strings import FAMILIES, asked, faults, hostile_strings


@settings(max_examples=25, deadline=None)
@given(rows=st.lists(st.tuples(awkward_texts, awkward_texts), min_size=1, max_size=6))
def test_awkward_texts(masked: Exported, rows: list[tuple[Any, Any]]):
    encoded = [tuple(t.encode() if isinstance(t, str) else t for t in row) for row in rows]
    assert asked(masked, encoded) == []


def test_all_families(masked: Exported):
    texts = list(hostile_strings(10 * len(FAMILIES), seed=5))
    assert asked(masked, list(zip(texts[::-1], texts))) == []


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

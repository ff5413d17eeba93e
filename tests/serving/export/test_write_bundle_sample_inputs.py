"""Requests with real texts."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from kbert.serving.export.write_bundle import HARD_TEXTS, sample_inputs, text_lengths
from tests.serving.tiny_models import Meter


def specs(*names: str) -> list[tf.TensorSpec]:
    return [tf.TensorSpec((None,), tf.string, name=name) for name in names]


def words(batch: np.ndarray) -> list[int]:
    return [len(text.split()) for text in batch]


def test_texts_have_the_lengths_that_are_asked_for():
    found = sample_inputs(specs("text"), None, [3, 12, 400])
    assert words(found["text"]) == [3, 12, 400]
    assert all(isinstance(text, bytes) for text in found["text"])
    assert len(set(found["text"])) == 3
    pair = sample_inputs(specs("text_a", "text_b"), None, [5, 5])
    assert list(pair) == ["text_a", "text_b"]
    assert set(pair["text_a"]) != set(pair["text_b"])


def test_questions_are_questions():
    found = sample_inputs(specs("question", "context"), None, [50, 9, 20])
    assert all(question.endswith(b"?") for question in found["question"])
    assert words(found["context"]) == [50, 9, 20]


def test_choices_are_two_a_row():
    choices = tf.TensorSpec((None, None), tf.string, name="choices")
    found = sample_inputs([*specs("context"), choices], None, [8, 4, 6])
    assert found["context"].shape == (3,) and found["choices"].shape == (3, 2)
    assert all(one != other for one, other in found["choices"])


def test_masks_for_a_model_that_fills_them():
    model = SimpleNamespace(tokenizer=SimpleNamespace(special_tokens_in_text=True))
    (text,) = sample_inputs(specs("text"), model, [12])["text"]
    assert text.split().count(b"[MASK]") == 2
    plain = SimpleNamespace(tokenizer=SimpleNamespace(special_tokens_in_text=False))
    assert b"[MASK]" not in sample_inputs(specs("text"), plain, [12])["text"][0]


def test_tokens_are_those_of_texts():
    model = Meter()
    found = sample_inputs(model.signatures()["tokens"][1], model, [1, 4])
    text = sample_inputs(specs("text"), model, [1, 4])["text"]
    assert found["lengths"].tolist() == [min(16, len(one)) for one in text]
    assert found["token_ids"].shape == found["segment_ids"].shape == (2, 16)
    assert found["token_ids"].dtype == found["lengths"].dtype == np.int32


def test_other_numbers_count_up():
    spec = tf.TensorSpec((None, None, 2), tf.float32, name="x")
    assert sample_inputs([spec], None, [1, 1])["x"].tolist() == [[[0.0, 1.0]], [[2.0, 3.0]]]


def test_hard_texts_follow():
    found = sample_inputs(specs("question", "context"), None, [4, 5], hard=True)
    assert len(found["question"]) == len(found["context"]) == 2 + len(HARD_TEXTS)
    assert found["context"][2] == b"" and found["context"][-1].startswith(b"\xff")
    numbers = tf.TensorSpec((None,), tf.int32, name="n")
    assert len(sample_inputs([*specs("text"), numbers], None, [4], hard=True)["text"]) == 1
    model = Meter()
    tokens = sample_inputs(model.signatures()["tokens"][1], model, [4], hard=True)
    assert len(tokens["lengths"]) == 1


@pytest.mark.parametrize(
    "kind, attributes, expected",
    [
        ("Classifier", {"max_sequence_length": 128}, (128, 4, 33)),
        ("QuestionAnswerer", {"max_sequence_length": 384}, (576, 4, 145)),
        ("Translator", {"max_source_length": 512}, (40, 4, 11)),
        ("Translator", {"max_source_length": 20}, (20, 4, 6)),
        ("Own", {"max_sequence_length": 4}, (8, 4, 3)),
        ("Own", {}, (64, 4, 17)),
    ],
)
def test_lengths_fill_what_a_model_reads(
    kind: str, attributes: dict[str, Any], expected: tuple[int, ...]
):
    """A model is known by the name of its class."""
    assert text_lengths(type(kind, (), attributes)()) == expected

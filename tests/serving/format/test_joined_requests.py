"""Which requests surely run alone, by rows and sizes."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from kbert.serving.format.joined_requests import joined_rows, runs_alone

TEXT: dict[str, Any] = {"text": (None,)}
IMAGE: dict[str, Any] = {"image": (None,)}
CHOICES: dict[str, Any] = {"context": (None,), "choices": (None, None)}
TOKENS: dict[str, Any] = {"token_ids": (None, None), "lengths": (None,)}


def texts(name: str, *rows: str) -> dict[str, Any]:
    return {name: np.array(rows, object)}


def tokens(rows: int, width: int) -> dict[str, Any]:
    return {"token_ids": np.zeros((rows, width), "int32"), "lengths": np.zeros(rows, "int32")}


@pytest.mark.parametrize(
    "shapes, inputs, alone",
    [
        (TEXT, texts("text", "a"), False),
        (TEXT, texts("text", *"abcdefg"), False),
        (TEXT, texts("text", *"abcdefgh"), True),
        (TEXT, texts("text"), True),
        (TEXT, texts("text", "a" * 4096), False),
        (TEXT, texts("text", "a" * 4000, "b" * 97), True),
        (IMAGE, texts("image", "a" * 4097), False),
        (IMAGE, texts("image", "a" * (2**20 + 1)), True),
        (CHOICES, {**texts("context", "a"), "choices": np.array([["", ""]], object)}, True),
        (TOKENS, tokens(2, 512), False),
        (TOKENS, tokens(2, 513), True),
        (TOKENS, tokens(8, 1), True),
    ],
)
def test_what_runs_alone(shapes, inputs, alone):
    assert runs_alone(shapes, inputs, 8) is alone


def test_a_graph_without_batches():
    assert joined_rows(tf.compat.v1.GraphDef()) == 0
    assert runs_alone(TEXT, texts("text", "a"), 0)

"""Requests for `serving_fuzz.py`: good ones, and others of any rank, rows, type and size."""

import random
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.serving.export.write_bundle import HARD_TEXTS

WORDS = [text.encode() if isinstance(text, str) else text for text in HARD_TEXTS]
WORDS += [b"a good film!", b"the film was very bad. " * 9, b"\0", b"x" * 300, b"[MASK] film"]
Inputs = dict[str, np.ndarray]


def drawn(draw: random.Random, shape: tuple[int, ...], dtype: Any, wild: bool) -> np.ndarray:
    """An array of texts or numbers; wild ones are also large, negative, or of another type."""
    kind = draw.random() if wild else 1.0
    count = int(np.prod(shape))
    if (dtype == tf.string) == (kind > 0.1):
        repeats = (1, 1, 50) if wild else (1,)
        words = [draw.choice(WORDS) * draw.choice(repeats) for _ in range(count)]
        return np.array([*words, b""], object)[:-1].reshape(shape)
    numbers = [draw.choice([0, 1, 2, 24, *((-1, 2**31 - 1) if wild else ())]) for _ in range(count)]
    return np.array(numbers, np.int64 if kind < 0.1 else np.int32).reshape(shape)


def good(draw: random.Random, signature: Any) -> Inputs:
    """One to three rows that fit; token rows of one to 24 tokens."""
    rows, width = draw.randint(1, 3), draw.randint(1, 24)
    shapes = {name: (rows, width)[: len(one.shape)] for name, one in signature.inputs.items()}
    found = {k: drawn(draw, shapes[k], one.dtype, False) for k, one in signature.inputs.items()}
    if "lengths" in found:
        found["lengths"] = np.array([draw.randint(1, width) for _ in range(rows)], np.int32)
        found["segment_ids"] = found["segment_ids"] % 2
    return found


def bad(draw: random.Random, signature: Any) -> Inputs:
    """A good request, one input of which has any shape and content."""
    found = good(draw, signature)
    name = draw.choice(sorted(found))
    shape = tuple(draw.choice([0, 1, 1, 2, 5, 40]) for _ in range(draw.randint(0, 3)))
    return {**found, name: drawn(draw, shape, signature.inputs[name].dtype, True)}


def is_same(found: np.ndarray, expected: np.ndarray) -> bool:
    """Whether an answer is the expected one; a batch may have padded it further."""
    own = found[tuple(slice(size) for size in expected.shape)]
    close = np.allclose if expected.dtype.kind == "f" else np.array_equal
    return own.shape == expected.shape and bool(close(own, expected, **_close(expected)))


def _close(expected: np.ndarray) -> dict[str, float]:
    return {"atol": 1e-4} if expected.dtype.kind == "f" else {}

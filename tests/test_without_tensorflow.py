"""The Keras-only rooms work where TensorFlow is not installed, with Keras on JAX."""

from pathlib import Path

import pytest

import kbert
from tests.house_rules import KERAS_ONLY
from tests.jax_process import run_on_jax

PROGRAM = """
import importlib, sys

for module in sys.argv[1:]:
    importlib.import_module(module)

import keras
import numpy as np
import kbert.layers
from kbert.models.bert import Bert

model = Bert(11, 8, 2, 2, 16, max_sequence_length=6)
inputs = {
    "token_ids": np.array([[1, 2, 3], [4, 5, 0]]),
    "segment_ids": np.array([[0, 0, 1], [0, 1, 0]]),
    "padding_mask": np.array([[True, True, True], [True, True, False]]),
}
outputs = model(inputs)

# The implicit mask of an embedding is the explicit one, in a functional model too.
ids = np.array([[1, 2, 0], [3, 0, 0]])
block = kbert.layers.EncoderBlock(2, 8)
tokens = keras.Input((3,), dtype="int32")
states = keras.layers.Embedding(4, 4, mask_zero=True)(tokens)
masked = keras.Model(tokens, block(states))
expected = block(np.asarray(masked.layers[1](ids)), (ids != 0)[:, None, None])
np.testing.assert_allclose(masked(ids), expected, atol=1e-6)
np.testing.assert_allclose(masked.predict(ids, verbose=0), expected, atol=1e-6)
print(keras.backend.backend(), *outputs["sequence_output"].shape, "tensorflow" in sys.modules)
"""


def modules_of_keras_only_rooms(root: Path) -> list[str]:
    """Dotted names of the files in the rooms that need no TensorFlow."""
    files = [file for room in KERAS_ONLY for file in sorted((root / "kbert" / room).rglob("*.py"))]
    return [".".join(file.relative_to(root).with_suffix("").parts) for file in files]


@pytest.mark.slow
def test_import_and_forward_on_jax():
    root = Path(kbert.__file__).parents[1]
    names = modules_of_keras_only_rooms(root)
    assert "kbert.models.bert" in names
    printed = run_on_jax(PROGRAM, *names, folder=root)
    assert printed.split() == ["jax", "2", "3", "8", "False"]

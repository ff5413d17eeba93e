"""How pairs are cut into batches, on TensorFlow and on JAX."""

from typing import Any

import keras
import numpy as np

from kbert.data.translation.parallel_batches import length_buckets
from kbert.data.translation.parallel_pipeline import PackedPairs

SIDES = ("sources", "targets")


def batch_shapes(tokens: int, *of: PackedPairs) -> dict[str, Any]:
    """Batches of at most as many cells a side; few shapes for JAX, which compiles each."""
    if keras.backend.backend() == "tensorflow":
        return {"batch_tokens": tokens}
    sides = (np.concatenate([getattr(one, side).lengths for one in of]) for side in SIDES)
    return {"buckets": length_buckets(*sides, tokens, count=3)}

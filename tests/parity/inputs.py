"""The numbers that two backends compute with, all from NumPy; nothing here needs TensorFlow."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

B, T, S, D = 3, 5, 7, 8
draw = np.random.default_rng(0)
X = draw.normal(size=(B, T, D)).astype("float32")
MEMORY = draw.normal(size=(B, S, 6)).astype("float32")
TOKENS = draw.integers(0, 11, (B, T)).astype("int32")
SEGMENTS = draw.integers(0, 2, (B, T)).astype("int32")
PADDING = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]], bool)
MEMORY_PADDING = np.array([[1] * 7, [1, 0, 1, 0, 1, 0, 1], [0] * 7], bool)
INPUTS = {"token_ids": TOKENS, "segment_ids": SEGMENTS, "padding_mask": PADDING}
LABELS = np.array([2, 0, 1], "int32")
LABEL_SETS = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1]], "int32")
SPANS = np.array([[[1, 2], [0, 2]], [[4, 4], [-1, -1]], [[0, 0], [-1, -1]]], "int32")
TAGS = np.array([[-1, 0, 2, -1, -1], [1, 1, -1, 0, 2], [-1] * 5], "int32")
SHARES = draw.dirichlet(np.ones(3), (B, T)).astype("float32") * (TAGS >= 0)[..., None]


def with_weights(layer: Any) -> Any:
    """Gives a built layer numbers that depend on the order of their paths alone."""
    for i, variable in enumerate(sorted(layer.weights, key=lambda v: v.path)):
        centre = 1.0 if variable.path.endswith("gamma") else 0.0
        numbers = np.random.default_rng(i).normal(centre, 0.4, tuple(variable.shape))
        variable.assign(numbers)
    return layer


def built(layer: Any, *shapes: Any) -> Any:
    layer.build(*shapes)
    return with_weights(layer)


def computed(function: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """What a function returns; on JAX compiled as a whole, else each operation would be by itself.

    Args:
        function: makes layers and calls them.
        *arguments: of the function.
    """
    if keras.backend.backend() != "jax":
        return function(*arguments)
    import jax

    return jax.jit(lambda: function(*arguments))()

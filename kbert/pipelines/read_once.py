"""Weights that a graph reads before its loops, and not in each of their turns."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras
import tensorflow as tf


@contextmanager
def weights_read_once(model: Any) -> Iterator[None]:
    """Lets the layers of a model compute with its weights as they are where this begins.

    A loop in which variables are read counts as one with effects, and its turns wait for each
    other, also those that have nothing in common.

    Args:
        model: a Keras model; nothing may assign to its variables within.
    """
    read = [(variable, tf.convert_to_tensor(variable.value)) for variable in model.variables]
    with keras.StatelessScope(state_mapping=read):
        yield

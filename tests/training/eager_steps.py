"""Keras' steps one by one, for trainings of a handful of them: to trace a step takes longer."""

import contextlib
import warnings
from collections.abc import Iterator
from unittest.mock import patch

import keras
import tensorflow as tf


@contextlib.contextmanager
def eager_steps() -> Iterator[None]:
    """Within it `fit`, `evaluate` and `predict` trace nothing, whatever a model was compiled with.

    Calls of several steps are a loop of TensorFlow's all the same.
    """
    always = property(lambda model: True, lambda model, value: None)
    with patch.object(keras.Model, "run_eagerly", always):
        yield


@contextlib.contextmanager
def eager_functions(wanted: bool = True) -> Iterator[None]:
    """Within it a `tf.function` runs as it is written: a model that answers once needs no graph.

    If it is not `wanted`, it is traced, also where it would run as it is written.

    What `tf.data` maps, and what is exported, is traced as ever. Not for a search of many words,
    whose loop has hundreds of small steps.
    """
    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(wanted)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Even though the `tf.config.experimental_run_func")
            yield
    finally:
        tf.config.run_functions_eagerly(before)

"""What holds of every task on token ids, whatever its head computes."""

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.small_bert import INPUTS, SHAPES

POOLER = {"bert/pooler/kernel", "bert/pooler/bias"}


def check_variables(model: keras.Model, head: Mapping[str, tuple[int, ...]]) -> None:
    """The paths and shapes of all weights are those of the small BERT and of the head.

    Args:
        model: called "model".
        head: path below the model -> shape.
    """
    expected = {f"bert/{path}": shape for path, shape in SHAPES.items()}
    expected |= {f"model/{path}": shape for path, shape in head.items()}
    assert {v.path: tuple(v.shape) for v in model.weights} == expected


def untrained(model: keras.Model) -> set[str]:
    """The paths of the weights that do not train."""
    return {v.path for v in model.weights} - {v.path for v in model.trainable_variables}


def check_gradients(model: keras.Model, targets: np.ndarray) -> None:
    """The default loss has finite gradients, whatever the precision."""
    with tf.GradientTape() as tape:
        loss = model.default_loss()(targets, model(INPUTS, training=True))
    for gradient in tape.gradient(loss, [v.value for v in model.trainable_variables]):
        assert np.isfinite(tf.cast(tf.convert_to_tensor(gradient), "float32")).all()


def check_dropout_of_head(made_model: Callable[..., keras.Model]) -> None:
    """Dropout before the head is on in training alone, and at rate 0 never.

    Args:
        made_model: makes the same model each time, by default without any dropout.
    """
    model = made_model(dropout=0.5)
    calm = [np.asarray(model(INPUTS)) for _ in range(2)]
    np.testing.assert_array_equal(*calm)
    wild = [np.asarray(model(INPUTS, training=True)) for _ in range(2)]
    assert not np.allclose(*wild)
    np.testing.assert_allclose(made_model()(INPUTS, training=True), calm[0], atol=1e-5)


def saved_and_loaded(model: keras.Model, folder: Path, inputs: Any = INPUTS) -> keras.Model:
    """The model read back, without a warning; it has the same configuration and answers.

    Args:
        model: a compiled model with the state of an optimizer.
        folder: where its file is written.
        inputs: of the model.
    """
    model.save(folder / "model.keras")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = keras.models.load_model(folder / "model.keras")
    assert again.get_config() == model.get_config()
    assert int(again.optimizer.iterations) == int(model.optimizer.iterations) > 0
    np.testing.assert_array_equal(again(inputs), model(inputs))
    return again


def check_trains_on(models: list[keras.Model], targets: np.ndarray, epochs: int) -> list[float]:
    """Models train on alike; returns the losses of the last one's epochs."""
    losses = [m.fit(INPUTS, targets, epochs=epochs, verbose=0).history["loss"] for m in models]
    for other in losses[1:]:
        np.testing.assert_allclose(other, losses[0], rtol=1e-6)
    return losses[-1]

"""Gated convolutions beside Keras' convolution; blocks are checked with the whole model."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.layers.convolution.gated_convolution import (
    ConvolutionDecoderBlock,
    ConvolutionEncoderBlock,
    ConvolvedSource,
    GatedConvolution,
)
from tests.check_layer import check_layer

INPUTS = np.random.default_rng(1).normal(size=(2, 7, 3)).astype("float32")
MASK = np.arange(7) < np.array([7, 4])[:, None]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kernel_width", [3, 5])
def test_numbers(kernel_width: int, causal: bool):
    layer = GatedConvolution(kernel_width, causal)
    layer.build(INPUTS.shape)
    layer.linear.bias.assign(np.linspace(-1, 1, 6))
    padding = "causal" if causal else "same"
    other = keras.layers.Conv1D(6, kernel_width, padding=padding)
    other.build(INPUTS.shape)
    kernel = np.asarray(layer.linear.direction * layer.linear.scale())
    kernel = kernel.reshape(kernel_width, 3, 6)
    other.set_weights([kernel, layer.linear.bias.numpy()])
    values, gates = np.split(other(INPUTS).numpy(), 2, axis=-1)
    np.testing.assert_allclose(layer(INPUTS), values / (1 + np.exp(-gates)), atol=1e-5)
    upstream = np.random.default_rng(2).normal(size=INPUTS.shape).astype("float32")

    def gradient(function: Callable[[Any], Any]) -> Any:
        inputs = tf.constant(INPUTS)
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            values, gates = tf.split(function(inputs), 2, axis=-1)
            total = tf.reduce_sum(values * tf.sigmoid(gates) * upstream)
        return tape.gradient(total, inputs)

    def ours(inputs: Any) -> Any:
        # Both halves as the layer sees them, before the gate.
        layer.of_windows = layer.linear  # type: ignore[method-assign]
        return layer(inputs)

    np.testing.assert_allclose(gradient(ours), gradient(other), atol=1e-5)


def test_the_ritual():
    linear = {"direction": (9, 6), "norm": (6,), "bias": (6,)}
    variables = {f"convolution/{name}": shape for name, shape in linear.items()}
    given = {"kernel_width": 3, "causal": True, "dropout": 0.2}
    check_layer(GatedConvolution, given, INPUTS, (2, 7, 3), variables)
    deeper = {f"gated_convolution/{name}": shape for name, shape in variables.items()}
    given = {"kernel_width": 3, "dropout": 0.0}
    check_layer(ConvolutionEncoderBlock, given, (INPUTS, MASK), (2, 7, 3), deeper)


def test_a_decoder_block():
    block = ConvolutionDecoderBlock(4, 3)
    block.build(INPUTS.shape)
    again = ConvolutionDecoderBlock.from_config(block.get_config())
    assert again.get_config() == block.get_config()
    draw = np.random.default_rng(2)
    keys, embedded = draw.normal(size=(2, 2, 7, 4)).astype("float32")
    target = draw.normal(size=(2, 7, 4)).astype("float32")
    source = ConvolvedSource.of(keys, embedded, MASK)
    states, weights = block(INPUTS, target, source)
    assert states.shape == (2, 7, 3)
    np.testing.assert_allclose(weights.numpy().sum(axis=-1), 1.0, atol=1e-6)
    np.testing.assert_array_equal(weights.numpy()[1, :, 4:], 0.0)
    before = np.zeros((2, 1, 6), "float32")
    scales = [layer.scale() for layer in block.linear_layers()]
    for time in range(7):
        here = slice(time, time + 1)
        found, before = block.step(INPUTS[:, here], before, target[:, here], source, scales)
        np.testing.assert_allclose(found, states[:, here], atol=1e-5)


def test_wrong_arguments():
    for width in (2, 1):
        with pytest.raises(ValueError, match=f"at least 3. Received: kernel_width={width}"):
            GatedConvolution(width)

"""The convolutional encoder-decoder, beside a NumPy reference from the paper."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.models.encoder_decoders.convs2s import ConvS2S
from tests import numpy_sequence_models as reference
from tests.models.encoder_decoders import check_sequence_model as checks

SETTINGS = [
    ({"num_encoder_layers": 2, "num_decoder_layers": 3, "kernel_width": 3}, {"embedding_dim": 4}),
    ({"num_encoder_layers": 1, "num_decoder_layers": 2, "kernel_width": 5}, {"tied": "target"}),
]


def small(**more: Any) -> ConvS2S:
    layers = {"num_encoder_layers": 2, "num_decoder_layers": 2}
    model = ConvS2S(hidden_dim=6, max_sequence_length=12, **{**checks.SIZES, **layers, **more})
    return checks.randomized(model)


@pytest.mark.parametrize("settings, more", SETTINGS)
def test_numbers(settings: dict[str, Any], more: dict[str, Any]):
    def wanted(w: Any, source: list[int], target: list[int]) -> Any:
        return reference.convs2s(w, source, target, **settings)

    check = checks.check_all if settings == SETTINGS[0][0] else checks.check_parts
    check(small(**settings, **more), wanted)


def test_receptive_field():
    """Without attention to what is equal everywhere, a state sees L (J - 1) tokens before it."""
    model = small(kernel_width=3)
    memory = model.encode(checks.INPUTS)
    target = np.random.default_rng(1).integers(0, 9, (3, 10)).astype("int32")
    embedded = tf.Variable(model.target_embedding(target))
    with tf.GradientTape() as tape:
        states = model.decoder_input(embedded)
        for block in model.decoder_blocks:
            states = block.convolution(states) + states
        one = tf.reduce_sum(states[:, 7])
    seen = np.abs(tape.gradient(one, embedded)).sum(axis=(0, 2)) > 0
    assert seen.tolist() == [3 <= place <= 7 for place in range(10)]
    assert memory["keys"].shape == (3, 6, 5)


def test_gradients_of_the_encoder_are_scaled():
    """By 1 / (2 x attentions), through keys and values; the embeddings' own part is not."""
    model = small(num_decoder_layers=3)

    def gradients(training: bool) -> tuple[Any, Any]:
        with tf.GradientTape() as tape:
            states = model.target_states(checks.TARGET, model.encode(checks.INPUTS, training))
            loss = tf.reduce_sum(states)
        weights = (model.encoder_output.direction, model.decoder_input.direction)
        return tape.gradient(loss, [weight.value for weight in weights])

    model.dropout_layer.rate = 0.0
    for block in (*model.encoder_blocks, *model.decoder_blocks):
        block.dropout_layer.rate = 0.0
    (scaled, same), (plain, other) = gradients(True), gradients(False)
    np.testing.assert_allclose(scaled, plain / 6.0, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(same, other, rtol=1e-5)


def test_new_weights_keep_the_variance():
    """Outputs of a new block are about as large as its inputs, whatever the width."""
    keras.utils.set_random_seed(2)
    model = ConvS2S(50, 128, 4, 4, dropout=0.0)
    states = keras.random.normal((4, 30, 128))
    for block in model.encoder_blocks:
        states = block(states, np.ones((4, 30), bool))
    assert 0.6 < float(np.std(states)) < 1.6


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"kernel_width": 4}, "must be odd and at least 3. Received: kernel_width=4"),
        ({"tied": "all"}, '`tied` must not be "all" for vocabularies of different sizes'),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        small(**arguments)

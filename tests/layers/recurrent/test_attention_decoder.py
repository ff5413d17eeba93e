"""The decoder with attention beside automatic differentiation of its steps, one by one."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from kbert.layers.recurrent.attention_decoder import AttentionDecoder

ROWS, STEPS, LENGTH, EMBEDDED, WIDE, UNITS = 3, 4, 5, 4, 6, 6
MASK = np.arange(LENGTH) < np.array([5, 2, 0])[:, None]


def random(*shape: int, seed: int = 0) -> tf.Tensor:
    return tf.constant(np.random.default_rng([seed, *shape]).normal(size=shape).astype("float32"))


def random_layer(**arguments: Any) -> AttentionDecoder:
    layer = AttentionDecoder(UNITS, **arguments)
    layer.build((None, None, EMBEDDED), (None, None, WIDE))
    for number, weight in enumerate(layer.weights):
        weight.assign(random(*weight.shape, seed=number) * 0.5)
    return layer


def one_by_one(layer: AttentionDecoder, inputs: Any, values: Any, state: Any) -> list[Any]:
    annotations, kept = layer.annotations(values, MASK), []
    for time in range(STEPS):
        contexts, weights = layer.attend(state[:, None], annotations)
        joined = tf.concat([inputs[:, time], contexts[:, 0]], axis=-1)
        state = layer.step(joined, state)
        kept.append((state, contexts[:, 0], weights[:, 0]))
    return [tf.stack(arrays, axis=1) for arrays in zip(*kept)]


@pytest.mark.parametrize("score", ["additive", "bilinear", "dot"])
@pytest.mark.parametrize("cell", ["gru", "gru_reset_after", "lstm"])
def test_numbers_and_gradients(cell: str, score: str):
    layer = random_layer(cell=cell, score=score, attention_dim=7)
    state = random(ROWS, layer.state_width)
    given = [random(ROWS, STEPS, EMBEDDED), random(ROWS, LENGTH, WIDE), state]
    ups = [random(ROWS, STEPS, width, seed=9) for width in (layer.state_width, WIDE, LENGTH)]

    def all_at_once(inputs: Any, values: Any, state: Any) -> list[Any]:
        return list(layer(inputs, layer.annotations(values, MASK), state))

    def gradients(function: Any) -> tuple[Any, Any]:
        weights = [weight.value for weight in layer.weights]
        with tf.GradientTape() as tape:
            tape.watch(given)
            found = function(*given)
            total = sum(tf.reduce_sum(a * b) for a, b in zip(found, ups))
        return found, tape.gradient(total, [*given, *weights])

    found, gradient = gradients(tf.function(all_at_once, autograph=False))
    wanted, known = gradients(lambda *inputs: one_by_one(layer, *inputs))
    for one, other in zip((*found, *gradient), (*wanted, *known), strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)


def test_weights_of_real_tokens_alone():
    layer = random_layer()
    annotations = layer.annotations(random(ROWS, LENGTH, WIDE), MASK)
    found = layer(random(ROWS, STEPS, EMBEDDED), annotations, random(ROWS, UNITS))
    sums = found.weights.numpy().sum(axis=-1)
    np.testing.assert_allclose(sums[:2], 1.0, atol=1e-6)
    np.testing.assert_array_equal(found.weights[2], 0.0)
    np.testing.assert_array_equal(found.weights.numpy()[1, :, 2:], 0.0)
    assert np.isfinite(found.states).all()


def test_configuration():
    layer = random_layer(score="bilinear", cell="lstm")
    again = AttentionDecoder.from_config(layer.get_config())
    assert again.get_config() == layer.get_config()
    names = ["bias", "kernel", "key", "recurrent_kernel"]
    assert sorted(weight.name for weight in layer.weights) == names


def test_wrong_arguments():
    with pytest.raises(ValueError, match="`score` must be one of .* Received: score='cosine'"):
        AttentionDecoder(3, score="cosine")
    with pytest.raises(ValueError, match="`attention_dim` must be at least 1"):
        AttentionDecoder(3, attention_dim=0)
    with pytest.raises(ValueError, match="needs annotations as wide as the states. Received: 6"):
        AttentionDecoder(3, score="dot").build((None, 2), (None, 6))

"""The decoder with attention beside automatic differentiation of its steps, one by one."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from kbert.layers.recurrent.attention_decoder import AttentionDecoder
from kbert.layers.recurrent.attention_steps import Sampling

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
        return list(layer(inputs, layer.annotations(values, MASK), state))[:3]

    check_gradients(layer, all_at_once, lambda *inputs: one_by_one(layer, *inputs), given, ups)


def check_gradients(layer: Any, function: Any, wanted: Any, given: Any, ups: Any) -> None:
    def gradients(function: Any) -> tuple[Any, Any]:
        weights = [weight.value for weight in layer.weights]
        with tf.GradientTape() as tape:
            tape.watch(given)
            found = function(*given)
            total = sum(tf.reduce_sum(a * b) for a, b in zip(found, ups))
        return found, tape.gradient(total, [*given, *weights])

    found, gradient = gradients(tf.function(function, autograph=False))
    wanted, known = gradients(wanted)
    for one, other in zip((*found, *gradient), (*wanted, *known), strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)


def by_hand(layer: Any, noise: Any, is_soft: Any, inputs: Any, values: Any, state: Any) -> Any:
    kept = []
    for time in range(STEPS):
        output = state[:, :UNITS]
        inner = tf.tanh((output @ layer.query)[:, None] + values @ layer.key + layer.score_bias)
        scores = tf.linalg.matvec(inner, layer.score_vector)
        scores = tf.where(MASK, scores, -1e9)
        chances = tf.nn.softmax(scores) * MASK.astype("float32")
        chosen = chances
        if layer.hard:
            drawn = tf.one_hot(tf.argmax(scores + noise[:, time], -1), LENGTH)
            chosen = tf.where(is_soft > 0, chances, drawn * MASK.astype("float32"))
        context = tf.einsum("bs,bsm->bm", chosen, values)
        context *= tf.sigmoid(output @ layer.gate_kernel + layer.gate_bias)
        state = layer.step(tf.concat([inputs[:, time], context], axis=-1), state)
        kept.append((state, context, chances))
    return [tf.stack(arrays, axis=1) for arrays in zip(*kept)]


@pytest.mark.parametrize("hard", [False, True])
def test_a_gate_and_hard_attention(hard: bool):
    layer = random_layer(cell="lstm", attention_dim=7, gated=True, hard=hard)
    state = random(ROWS, layer.state_width)
    given = [random(ROWS, STEPS, EMBEDDED), random(ROWS, LENGTH, WIDE), state]
    ups = [random(ROWS, STEPS, width, seed=9) for width in (layer.state_width, WIDE, LENGTH)]
    noise, is_soft = 3 * random(ROWS, STEPS, LENGTH, seed=5), tf.constant([[0.0], [1.0], [0.0]])
    sampling = Sampling(noise, is_soft) if hard else None

    def all_at_once(inputs: Any, values: Any, state: Any) -> list[Any]:
        return list(layer(inputs, layer.annotations(values, MASK), state, sampling))[:3]

    def wanted(*inputs: Any) -> Any:
        return by_hand(layer, noise, is_soft, *inputs)

    check_gradients(layer, all_at_once, wanted, given, ups)


def test_places_of_hard_attention():
    layer = random_layer(hard=True)
    annotations = layer.annotations(random(ROWS, LENGTH, WIDE), MASK)
    given = random(ROWS, STEPS, EMBEDDED), annotations, random(ROWS, UNITS)
    likeliest = layer(*given)
    np.testing.assert_array_equal(
        likeliest.chosen[:2], np.eye(LENGTH)[np.argmax(likeliest.weights[:2], axis=-1)]
    )
    noise = np.zeros((ROWS, STEPS, LENGTH), "float32")
    noise[0, :, 3] = 99.0
    drawn = layer(*given, Sampling(tf.constant(noise), tf.zeros((ROWS, 1))))
    np.testing.assert_array_equal(drawn.chosen[0], np.eye(LENGTH)[[3] * STEPS])
    np.testing.assert_allclose(drawn.contexts[0, 1], annotations.values[0, 3], atol=1e-6)


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

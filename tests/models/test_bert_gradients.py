"""Gradients of Bert: against the reference, and with gradient checkpointing."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.models.weights import weight_name
from tests import numpy_reference as reference
from tests.small_bert import ARRAYS, INPUTS, MASK, SEGMENTS, SHAPES, TOKENS, small_bert

# Fixed random numbers turn the outputs into one loss.
SEQUENCE_WEIGHTS = np.random.default_rng(1).normal(size=(4, 6, 12))
POOLED_WEIGHTS = np.random.default_rng(2).normal(size=(4, 12))


def reference_loss(arrays):
    outputs = reference.bert(arrays, TOKENS, 2, 3, SEGMENTS, MASK)
    sequence = (outputs.sequence_output * SEQUENCE_WEIGHTS).sum()
    return sequence + (outputs.pooled_output * POOLED_WEIGHTS).sum()


def gradients_of(model, training):
    with tf.GradientTape() as tape:
        outputs = model(INPUTS, training=training)
        loss = tf.reduce_sum(outputs["sequence_output"] * SEQUENCE_WEIGHTS.astype("float32"))
        loss += tf.reduce_sum(outputs["pooled_output"] * POOLED_WEIGHTS.astype("float32"))
    gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])
    return [tf.convert_to_tensor(gradient) for gradient in gradients]


def by_name(model, gradients):
    names = [weight_name(model, variable) for variable in model.trainable_variables]
    return dict(zip(names, (np.asarray(gradient) for gradient in gradients), strict=True))


def largest(gradients):
    return max(float(np.abs(gradient).max()) for gradient in gradients.values())


@pytest.mark.parametrize("training", [False, True])
def test_derivatives_are_those_of_the_reference(training):
    # In training some layers write out their own gradients; without dropout the numbers must be
    # the same. Central differences of the reference in float64, along one random direction a
    # weight.
    model = small_bert(dropout=0.0, attention_dropout=0.0)
    found = by_name(model, gradients_of(model, training))
    assert sorted(found) == sorted(SHAPES)
    draw = np.random.default_rng(3)
    for name, shape in SHAPES.items():
        direction = draw.normal(size=shape) * 1e-5
        there = reference_loss({**ARRAYS, name: ARRAYS[name] + direction})
        back = reference_loss({**ARRAYS, name: ARRAYS[name] - direction})
        expected = (there - back) / 2e-5
        along = float((found[name] * direction / 1e-5).sum())
        assert along == pytest.approx(expected, rel=2e-4, abs=2e-4), name


def seeded(checkpointing):
    """Models with equal weights and equal beginnings of their random sequences."""
    keras.utils.set_random_seed(11)
    return small_bert(dropout=0.3, attention_dropout=0.2, gradient_checkpointing=checkpointing)


@pytest.mark.parametrize("in_graph", [False, True])
def test_checkpointing_gives_the_same_gradients_with_dropout(in_graph):
    steps = {}
    for checkpointing in (False, True):
        model = seeded(checkpointing)
        step = tf.function(gradients_of) if in_graph else gradients_of
        # Twice: each step drops other units, with and without checkpointing the same ones.
        steps[checkpointing] = [by_name(model, step(model, True)) for _ in range(2)]
    for plain, recomputed in zip(steps[False], steps[True], strict=True):
        room = 1e-6 * largest(plain)
        for name, gradient in plain.items():
            np.testing.assert_allclose(recomputed[name], gradient, rtol=0, atol=room, err_msg=name)
    first, second = steps[True]
    name = "encoder_block_1/feed_forward/output/kernel"
    assert np.abs(first[name] - second[name]).max() > 1e-3 * largest(first)


def test_checkpointing_computes_the_blocks_again():
    model, calls = small_bert(gradient_checkpointing=True), []
    block = model.blocks[0]
    call = block.call
    block.call = lambda *args, **kwargs: calls.append(1) or call(*args, **kwargs)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(INPUTS, training=True)["pooled_output"])
    forward = len(calls)
    tape.gradient(loss, [v.value for v in model.trainable_variables])
    assert len(calls) > forward > 0


def test_checkpointing_changes_nothing_at_inference():
    plain, recomputed = (small_bert(gradient_checkpointing=x)(INPUTS) for x in (False, True))
    for name, output in plain.items():
        np.testing.assert_array_equal(recomputed[name], output)


@pytest.mark.slow
def test_checkpointing_under_fit_in_mixed_precision():
    model = small_bert(gradient_checkpointing=True, dtype="mixed_bfloat16")
    inputs = {name: keras.Input((6,), dtype=x.dtype.name, name=name) for name, x in INPUTS.items()}
    training = keras.Model(inputs, model(inputs)["pooled_output"])
    training.compile("sgd", "mse")
    history = training.fit(INPUTS, np.zeros((4, 12)), epochs=2, verbose=0).history["loss"]
    assert np.isfinite(history).all() and history[0] != history[1]

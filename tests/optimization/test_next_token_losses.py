"""Smoothed cross-entropy and perplexity: by hand, and by plain NumPy in double precision."""

import json
import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.optimization.next_token_losses import (
    LabelSmoothedCrossEntropy,
    NextTokenAccuracy,
    Perplexity,
    token_cross_entropy,
)
from tests import numpy_reference as reference
from tests.jax_process import run_on_jax

draw = np.random.default_rng(8)
LOGITS = draw.normal(scale=3.0, size=(4, 5, 11))
TARGETS = draw.integers(0, 11, (4, 5))
TARGETS[0, 3:] = TARGETS[1] = TARGETS[3, 0] = -1
COUNTS = TARGETS >= 0


def smoothed(smoothing):
    """q as one distribution a token, all 0 where a token counts nothing."""
    ids = np.maximum(TARGETS, 0).reshape(-1)
    return reference.smooth_labels(ids, 11, smoothing).reshape(4, 5, 11) * COUNTS[..., None]


def expected_losses(smoothing):
    return -(smoothed(smoothing) * reference.log_softmax(LOGITS)).sum(axis=-1)


def gradient_of(function, logits):
    logits = tf.convert_to_tensor(logits)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        value = function(logits)
    return value, tape.gradient(value, logits)


# --- the loss --------------------------------------------------------------------------------


def test_by_hand():
    # p = 1/2, 1/4, 1/8, 1/8; smoothing 0.4 over 4: q = 0.1, 0.7, 0.1, 0.1 for truth 1.
    logits = np.log([[[1 / 2, 1 / 4, 1 / 8, 1 / 8], [1 / 8, 1 / 8, 1 / 4, 1 / 2]]]) + 5.0
    one = math.log(2) * (0.1 * 1 + 0.7 * 2 + 0.1 * 3 + 0.1 * 3)
    other = math.log(2) * (0.7 * 3 + 0.1 * 3 + 0.1 * 2 + 0.1 * 1)
    loss = LabelSmoothedCrossEntropy(0.4)
    assert float(loss(np.array([[1, -1]]), logits)) == pytest.approx(one, rel=1e-6)
    assert float(loss(np.array([[1, 0]]), logits)) == pytest.approx((one + other) / 2, rel=1e-6)
    plain = LabelSmoothedCrossEntropy(0.0)(np.array([[1, 0]]), logits)
    assert float(plain) == pytest.approx((2 + 3) / 2 * math.log(2), rel=1e-6)
    # The least that the loss can be is the entropy of q, where p = q.
    q = np.array([0.1, 0.7, 0.1, 0.1])
    least = loss(np.array([[1]]), np.log(q)[None, None])
    assert float(least) == pytest.approx(-(q * np.log(q)).sum(), rel=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("dtype, room", [("float64", 1e-13), ("float32", 2e-6)])
def test_reference(smoothing, dtype, room):
    logits, expected = LOGITS.astype(dtype), expected_losses(smoothing)
    found = token_cross_entropy(TARGETS, logits, smoothing)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=room, atol=room)
    assert not np.asarray(found)[~COUNTS].any()
    # Per token: exactly the mean over the 12 tokens that count, whatever row they stand in.
    assert COUNTS.sum() == 12
    mean = LabelSmoothedCrossEntropy(smoothing)(TARGETS, logits)
    assert float(mean) == pytest.approx(expected.sum() / 12, rel=room * 10)
    per_row = LabelSmoothedCrossEntropy(smoothing, "sequence", reduction="none")(TARGETS, logits)
    np.testing.assert_allclose(per_row, expected.sum(axis=1), rtol=room * 10)
    mean = LabelSmoothedCrossEntropy(smoothing, "sequence")(TARGETS, logits)
    assert float(mean) == pytest.approx(expected.sum() / 4, rel=room * 10)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("in_graph", [True, False])
def test_gradient_is_probability_less_truth(smoothing, in_graph):
    loss = LabelSmoothedCrossEntropy(smoothing)

    def both(logits):
        return gradient_of(lambda z: 3.0 * loss(TARGETS, z), logits)

    run = tf.function(both) if in_graph else both
    _, found = run(tf.constant(LOGITS))
    p = reference.softmax(LOGITS) * COUNTS[..., None]
    np.testing.assert_allclose(found, 3.0 * (p - smoothed(smoothing)) / 12, atol=1e-15)


@pytest.mark.parametrize("per", ["token", "sequence"])
def test_gradient_by_finite_differences(per):
    loss = LabelSmoothedCrossEntropy(0.1, per)
    _, found = gradient_of(lambda z: loss(TARGETS, z), LOGITS)
    step, places = 1e-6, draw.integers(0, LOGITS.size, 40)
    for place in places:
        ends = []
        for sign in (1, -1):
            moved = LOGITS.copy()
            moved.flat[place] += sign * step
            ends.append(float(loss(TARGETS, tf.constant(moved))))
        slope = (ends[0] - ends[1]) / (2 * step)
        assert found.numpy().flat[place] == pytest.approx(slope, abs=1e-8)


def test_sample_weights():
    weights = np.array([2.0, 5.0, 0.0, 0.5])
    sums = expected_losses(0.1).sum(axis=1)
    found = LabelSmoothedCrossEntropy(0.1)(TARGETS, LOGITS, sample_weight=weights)
    assert float(found) == pytest.approx((weights * sums).sum() / 12, rel=1e-6)


@pytest.mark.parametrize("per", ["token", "sequence"])
def test_no_token_counts(per):
    loss = LabelSmoothedCrossEntropy(0.1, per)
    value, found = gradient_of(lambda z: loss(np.full((4, 5), -1), z), LOGITS.astype("float32"))
    assert float(value) == 0.0
    assert not found.numpy().any()


def test_no_rows():
    value, found = gradient_of(
        lambda z: tf.reduce_sum(token_cross_entropy(np.zeros((0, 5), int), z, 0.1)), LOGITS[:0]
    )
    assert float(value) == 0.0 and found.shape == (0, 5, 11)


def test_low_precision_is_widened():
    logits = tf.cast(LOGITS, "bfloat16")
    exact = tf.cast(logits, "float64")
    loss = LabelSmoothedCrossEntropy(0.1)
    value, found = gradient_of(lambda z: loss(TARGETS, z), logits)
    expected, slope = gradient_of(lambda z: loss(TARGETS, z), exact)
    assert value.dtype == "float32" and found.dtype == "bfloat16"
    assert float(value) == pytest.approx(float(expected), rel=1e-6)
    # Only the end is rounded: to 8 bits.
    np.testing.assert_allclose(tf.cast(found, "float64"), slope, rtol=2**-8, atol=1e-9)


def test_large_logits_are_no_trouble():
    for shift in (-1e4, 1e4):
        value = token_cross_entropy(TARGETS, (LOGITS + shift).astype("float32"), 0.1)
        np.testing.assert_allclose(value, expected_losses(0.1), atol=5e-3)
    # The truth has a probability of e^-1000.
    value, found = gradient_of(
        lambda z: tf.reduce_sum(token_cross_entropy(np.array([[0]]), z)),
        np.array([[[-1000.0, 0.0]]], "float32"),
    )
    assert float(value) == 1000.0
    np.testing.assert_array_equal(found, [[[-1.0, 1.0]]])


def test_unknown_sizes_types_of_ids_and_xla():
    specs = [tf.TensorSpec((None, None), tf.int64), tf.TensorSpec((None, None, 11), tf.float64)]
    graph = tf.function(lambda y, z: token_cross_entropy(y, z, 0.1), input_signature=specs)
    found = graph(tf.constant(TARGETS, tf.int64), tf.constant(LOGITS))
    np.testing.assert_allclose(found, expected_losses(0.1), rtol=1e-12, atol=1e-12)
    loss = LabelSmoothedCrossEntropy(0.1)
    compiled = tf.function(lambda z: gradient_of(lambda x: loss(TARGETS, x), z), jit_compile=True)
    for a, b in zip(compiled(tf.constant(LOGITS)), gradient_of(lambda x: loss(TARGETS, x), LOGITS)):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-14)


PROGRAM = """
import json, sys
import jax, keras, numpy as np
from kbert.optimization.next_token_losses import (
    LabelSmoothedCrossEntropy,
    NextTokenAccuracy,
    Perplexity,
)

data = np.load(sys.argv[1])
loss = LabelSmoothedCrossEntropy(0.1)
logits, targets = data["logits"].astype("float32"), data["targets"]
value, slope = jax.jit(jax.value_and_grad(lambda z, y: loss(y, z)))(logits, targets)
perplexity, accuracy = Perplexity(), NextTokenAccuracy()
for i in range(len(logits)):
    perplexity.update_state(targets[i : i + 1], logits[i : i + 1])
    accuracy.update_state(targets[i : i + 1], logits[i : i + 1])
keras.utils.set_random_seed(1)
layer = keras.layers.Dense(11)
model = keras.Sequential([keras.Input((None, 11)), layer])
model.compile("sgd", loss, metrics=[Perplexity(), NextTokenAccuracy()])
losses = model.fit(logits, targets, epochs=10, shuffle=False, verbose=0).history["loss"]
results = {"backend": keras.backend.backend(), "value": float(value), "losses": losses}
results |= {"slope": np.asarray(slope, "float64").tolist()}
results |= {"perplexity": float(perplexity.result()), "accuracy": float(accuracy.result())}
print(json.dumps(results))
"""


@pytest.mark.slow
def test_on_jax(tmp_path, repository):
    np.savez(tmp_path / "data.npz", logits=LOGITS, targets=TARGETS)
    found = json.loads(run_on_jax(PROGRAM, str(tmp_path / "data.npz"), folder=repository))
    assert found["backend"] == "jax"
    assert found["value"] == pytest.approx(expected_losses(0.1).sum() / 12, rel=1e-5)
    slope = (reference.softmax(LOGITS) * COUNTS[..., None] - smoothed(0.1)) / 12
    np.testing.assert_allclose(found["slope"], slope, atol=1e-7)
    assert found["perplexity"] == pytest.approx(math.exp(expected_losses(0).sum() / 12), rel=1e-5)
    right = (LOGITS.argmax(axis=-1) == TARGETS)[COUNTS].mean()
    assert found["accuracy"] == pytest.approx(right)
    assert found["losses"][-1] < found["losses"][0]


# --- accuracy --------------------------------------------------------------------------------


def test_accuracy_counts_the_likeliest_of_the_tokens_that_count():
    metric = NextTokenAccuracy()
    assert float(metric.result()) == 0.0
    for row in range(len(LOGITS)):
        metric.update_state(TARGETS[row : row + 1], LOGITS[row : row + 1])
    right = (LOGITS.argmax(axis=-1) == TARGETS)[COUNTS].mean()
    assert float(metric.result()) == pytest.approx(right)
    metric.reset_state()
    # By hand: the last of two tokens is not the likeliest; none counts in the second row.
    logits = np.array([[[1.0, 2.0], [1.0, 2.0]], [[5.0, 0.0], [5.0, 0.0]]])
    metric.update_state(np.array([[1, 0], [-1, -1]]), logits)
    assert float(metric.result()) == 0.5


# --- perplexity ------------------------------------------------------------------------------


def test_perplexity_by_hand():
    metric = Perplexity()
    assert float(metric.result()) == 1.0
    logits = np.log([[[1 / 2, 1 / 4, 1 / 4], [1 / 8, 1 / 8, 3 / 4]]])
    metric.update_state(np.array([[0, -1]]), logits)
    assert float(metric.result()) == pytest.approx(2.0, rel=1e-6)
    # 1, 2 and 3 bits over three tokens: 2 bits a token. The mean of the batches would be other.
    metric.update_state(np.array([[1, 1]]), logits)
    assert float(metric.result()) == pytest.approx(4.0, rel=1e-6)
    metric.reset_state()
    metric.update_state(np.array([[-1, -1]]), logits)
    assert float(metric.result()) == 1.0


def test_perplexity_does_not_depend_on_batches():
    expected = math.exp(expected_losses(0.0).sum() / 12)
    for cuts in ([4], [1, 2, 3, 4], [3, 4]):
        metric = Perplexity()
        for first, last in zip([0, *cuts], cuts):
            metric.update_state(TARGETS[first:last], LOGITS[first:last])
        assert float(metric.result()) == pytest.approx(expected, rel=1e-5)


def test_perplexity_is_capped():
    metric = Perplexity()
    metric.update_state(np.array([[0]]), np.array([[[0.0, 1e6]]], "float32"))
    assert float(metric.result()) == pytest.approx(math.exp(88.0), rel=1e-4)
    assert np.isfinite(np.float32(metric.result()))


# --- ritual ----------------------------------------------------------------------------------


def test_configuration():
    loss = LabelSmoothedCrossEntropy(0.2, "sequence", name="mine", reduction="sum")
    stored = keras.saving.serialize_keras_object(loss)
    assert stored["registered_name"] == "kbert>LabelSmoothedCrossEntropy"
    again = keras.saving.deserialize_keras_object(stored)
    assert again.get_config() == loss.get_config()
    assert (again.smoothing, again.per, again.name, again.reduction) == (
        0.2,
        "sequence",
        "mine",
        "sum",
    )
    np.testing.assert_allclose(again(TARGETS, LOGITS), loss(TARGETS, LOGITS))
    stored = keras.saving.serialize_keras_object(Perplexity())
    assert stored["registered_name"] == "kbert>Perplexity"
    assert keras.saving.deserialize_keras_object(stored).name == "perplexity"


@pytest.mark.parametrize("smoothing", [-0.1, 1.0, float("nan")])
def test_wrong_smoothing(smoothing):
    message = rf"`smoothing` must be in \[0, 1\)\. Received: smoothing={smoothing}"
    with pytest.raises(ValueError, match=message):
        LabelSmoothedCrossEntropy(smoothing)


def test_wrong_per():
    with pytest.raises(ValueError, match='`per` must be "sequence" or "token"'):
        LabelSmoothedCrossEntropy(per="batch")

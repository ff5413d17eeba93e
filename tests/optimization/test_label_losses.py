"""The loss and the metrics of independent labels, by hand."""

import math

import keras
import numpy as np
import pytest

from kbert.optimization.label_losses import MicroF1, SigmoidCrossEntropy, exact_match

# Probabilities 3/4, 1/2; 1/4, 1/2.
LOGITS = np.array([[math.log(3.0), 0.0], [-math.log(3.0), 0.0]])
TARGETS = np.array([[1, 0], [1, 1]])
DRAW = np.random.default_rng(3)
RANDOM, LABELS = DRAW.normal(scale=3.0, size=(7, 5)), DRAW.integers(0, 2, (7, 5))


def by_definition(targets, logits, weights=1.0):
    p = 1 / (1 + np.exp(-logits))
    return -(weights * targets * np.log(p) + (1 - targets) * np.log(1 - p)).mean(-1)


def test_by_hand():
    found = SigmoidCrossEntropy(reduction="none")(TARGETS, LOGITS)
    log = math.log
    np.testing.assert_allclose(found, [(log(4 / 3) + log(2)) / 2, (log(4) + log(2)) / 2], rtol=1e-6)
    mean = SigmoidCrossEntropy()(TARGETS, LOGITS, sample_weight=np.array([2.0, 0.0]))
    assert float(mean) == pytest.approx((log(4 / 3) + log(2)) / 2, rel=1e-6)


@pytest.mark.parametrize("dtype", ["int32", "float32", "bool"])
def test_definition_and_keras(dtype):
    targets = LABELS.astype(dtype)
    found = SigmoidCrossEntropy(reduction="none")(targets, RANDOM)
    np.testing.assert_allclose(found, by_definition(LABELS, RANDOM), rtol=1e-5)
    keras_loss = keras.losses.BinaryCrossentropy(from_logits=True)
    expected = float(keras_loss(LABELS.astype("float32"), RANDOM))
    assert float(SigmoidCrossEntropy()(targets, RANDOM)) == pytest.approx(expected, rel=1e-5)


def test_weights_and_smoothing():
    weights = [0.5, 1.0, 2.0, 0.0, 3.0]
    found = SigmoidCrossEntropy(weights, reduction="none")(LABELS, RANDOM)
    expected = by_definition(LABELS, RANDOM, np.array(weights))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    loss = SigmoidCrossEntropy(label_smoothing=0.2, reduction="none")
    expected = by_definition(LABELS * 0.8 + 0.1, RANDOM)
    np.testing.assert_allclose(loss(LABELS, RANDOM), expected, rtol=1e-5)
    again = SigmoidCrossEntropy.from_config(SigmoidCrossEntropy(weights, 0.2).get_config())
    assert again.positive_weights == weights and again.label_smoothing == 0.2
    with pytest.raises(ValueError, match=r"`label_smoothing` must be in \[0, 1\)\. .*=1"):
        SigmoidCrossEntropy(label_smoothing=1)


def test_extreme_logits_and_low_precision():
    logits = np.array([[1e4, -1e4], [-1e4, 1e4]])
    found = SigmoidCrossEntropy(reduction="none")(np.array([[1, 0], [1, 1]]), logits)
    np.testing.assert_allclose(found, [0.0, 5e3])
    low = keras.ops.cast(RANDOM, "bfloat16")
    found = SigmoidCrossEntropy(reduction="none")(LABELS, low)
    assert found.dtype == "float32"
    exact = np.asarray(keras.ops.cast(low, "float32"))
    np.testing.assert_allclose(found, by_definition(LABELS, exact), rtol=1e-5)


def test_exact_match_by_hand():
    assert np.asarray(exact_match(TARGETS, LOGITS)).tolist() == [0.0, 0.0]
    # A probability of 1/2 is the label.
    assert np.asarray(exact_match([[1, 1], [0, 1]], LOGITS)).tolist() == [1.0, 1.0]


def test_micro_f1_by_hand():
    metric = MicroF1()
    assert float(metric.result()) == 0.0
    # Predicted: both of the first, the second of the other; right: 2 hits of 3 and 3.
    metric.update_state(TARGETS, LOGITS)
    assert float(metric.result()) == pytest.approx(2 * 2 / (3 + 3))
    metric.update_state(TARGETS[:1], LOGITS[:1], sample_weight=[3.0])
    assert float(metric.result()) == pytest.approx(2 * (2 + 3) / (6 + 3 * 3))
    metric.reset_state()
    assert float(metric.result()) == 0.0

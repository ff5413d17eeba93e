"""Cross-entropy and accuracy by hand and against the NumPy reference."""

import math

import keras
import numpy as np
import pytest

from kbert.optimization.losses import SoftmaxCrossEntropy, class_distribution, label_accuracy
from tests import numpy_reference as reference

LOGITS = np.array([[math.log(1.0), math.log(3.0)], [0.0, 0.0]])  # probabilities 1/4, 3/4; 1/2, 1/2
LABELS = np.array([1, 0])
RANDOM = np.random.default_rng(4).normal(scale=3.0, size=(7, 5))
IDS = np.random.default_rng(5).integers(0, 5, 7)
SOFT = np.random.default_rng(6).dirichlet(np.ones(5), 7)


def test_by_hand():
    loss = SoftmaxCrossEntropy()(LABELS, LOGITS)
    assert float(loss) == pytest.approx((math.log(4 / 3) + math.log(2)) / 2, rel=1e-6)
    soft = SoftmaxCrossEntropy()(np.array([[0.5, 0.5], [1.0, 0.0]]), LOGITS)
    by_hand = (0.5 * math.log(4) + 0.5 * math.log(4 / 3) + math.log(2)) / 2
    assert float(soft) == pytest.approx(by_hand, rel=1e-6)


def test_class_weights_by_hand():
    # Divided by the number of examples, not by the weights.
    loss = SoftmaxCrossEntropy([10.0, 2.0])(LABELS, LOGITS)
    by_hand = (2 * math.log(4 / 3) + 10 * math.log(2)) / 2
    assert float(loss) == pytest.approx(by_hand, rel=1e-6)


def test_sample_weights_by_hand():
    loss = SoftmaxCrossEntropy()(LABELS, LOGITS, sample_weight=np.array([3.0, 0.0]))
    assert float(loss) == pytest.approx(3 * math.log(4 / 3) / 2, rel=1e-6)


@pytest.mark.parametrize("weights", [None, [0.5, 1.0, 2.0, 0.0, 3.0]])
@pytest.mark.parametrize("targets", [IDS, IDS[:, None], SOFT])
def test_reference(weights, targets):
    found = SoftmaxCrossEntropy(weights, reduction="none")(targets, RANDOM)
    flat = targets[:, 0] if targets.shape[-1] == 1 else targets
    expected = reference.cross_entropy(RANDOM, flat, weights)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    mean = SoftmaxCrossEntropy(weights)(targets, RANDOM)
    assert float(mean) == pytest.approx(expected.mean(), rel=1e-5)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "uint8"])
def test_types_of_ids(dtype):
    expected = reference.cross_entropy(RANDOM, IDS)
    found = SoftmaxCrossEntropy(reduction="none")(IDS.astype(dtype), RANDOM)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_logits_of_low_precision_are_widened():
    logits = keras.ops.cast(RANDOM, "bfloat16")
    found = SoftmaxCrossEntropy(reduction="none")(IDS, logits)
    assert found.dtype == "float32"
    exact = np.asarray(keras.ops.cast(logits, "float32"))
    np.testing.assert_allclose(found, reference.cross_entropy(exact, IDS), rtol=1e-5)


def test_extreme_logits_are_finite():
    logits = np.array([[1e4, -1e4], [-1e4, 1e4]])
    found = SoftmaxCrossEntropy(reduction="none")(np.array([0, 0]), logits)
    np.testing.assert_allclose(found, [0.0, 2e4])


def test_two_classes_of_soft_labels_for_two_examples():
    # (2, 2) is read as distributions, whatever the numbers are.
    np.testing.assert_array_equal(class_distribution(np.eye(2), LOGITS), np.eye(2))
    np.testing.assert_array_equal(class_distribution(LABELS, LOGITS), [[0, 1], [1, 0]])


def test_accuracy_by_hand():
    logits = np.array([[1.0, 2.0, 0.0], [3.0, 2.0, 0.0], [0.0, 0.0, 1.0], [5.0, 4.0, 4.0]])
    np.testing.assert_array_equal(label_accuracy(np.array([1, 1, 2, 0]), logits), [1, 0, 1, 1])
    column = np.array([[1], [1], [2], [0]])
    np.testing.assert_array_equal(label_accuracy(column, logits), [1, 0, 1, 1])
    soft = np.array([[0.2, 0.5, 0.3], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.3, 0.6, 0.1]])
    np.testing.assert_array_equal(label_accuracy(soft, logits), [1, 0, 1, 0])


def test_accuracy_as_a_metric_over_batches():
    metric = keras.metrics.MeanMetricWrapper(label_accuracy, name="accuracy")
    metric.update_state(np.array([1, 0, 0]), np.array([[0.0, 1.0]] * 3))
    metric.update_state(np.array([1]), np.array([[0.0, 1.0]]))
    assert float(metric.result()) == pytest.approx(0.5)  # 2 of 4, not the mean of 1/3 and 1


def test_configuration():
    loss = SoftmaxCrossEntropy([1, 2.5], name="loss", reduction="sum")
    stored = keras.saving.serialize_keras_object(loss)
    assert stored["registered_name"] == "kbert>SoftmaxCrossEntropy"
    again = keras.saving.deserialize_keras_object(stored)
    assert again.class_weights == [1.0, 2.5]
    assert (again.name, again.reduction) == ("loss", "sum")
    np.testing.assert_allclose(again(LABELS, LOGITS), loss(LABELS, LOGITS))

"""Several labels on token ids, against the NumPy reference; losses and metrics that fit."""

import warnings

import keras
import numpy as np
import pytest

from kbert.optimization.label_losses import SigmoidCrossEntropy
from kbert.optimization.losses import SoftmaxCrossEntropy
from kbert.tasks.multi_label.head import MultiLabelClassification
from tests import numpy_reference as reference
from tests.small_bert import INPUTS, MASK, SEGMENTS, assign_head, expected_outputs, small_bert
from tests.tasks.check_task import (
    POOLER,
    check_dropout_of_head,
    check_gradients,
    check_variables,
    saved_and_loaded,
    untrained,
)

SHAPES = {"classifier/kernel": (12, 3), "classifier/bias": (3,)}
ARRAYS = reference.random_arrays(SHAPES, seed=9)
TARGETS = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0], [1, 1, 1]], "float32")


def made_model(dropout=0.0, **kwargs):
    keras.utils.set_random_seed(4)
    dtype = {"dtype": kwargs["dtype"]} if "dtype" in kwargs else {}
    encoder = small_bert(dropout=0.0, attention_dropout=0.0, **dtype)
    model = MultiLabelClassification(encoder, 3, dropout=dropout, name="model", **kwargs)
    if model.head == "pooler":
        assign_head(model, ARRAYS)
    return model


def expected_logits():
    pooled = expected_outputs(segment_ids=SEGMENTS, padding_mask=MASK).pooled_output
    return reference.dense(pooled, ARRAYS["classifier/kernel"], ARRAYS["classifier/bias"])


def expected_losses(weights=1.0):
    p = 1 / (1 + np.exp(-expected_logits()))
    return -(weights * TARGETS * np.log(p) + (1 - TARGETS) * np.log(1 - p)).mean(-1)


def test_numbers_and_variables():
    model = made_model()
    logits = model(INPUTS)
    assert logits.shape == (4, 3) and logits.dtype == "float32"
    np.testing.assert_allclose(logits, expected_logits(), atol=5e-5)
    check_variables(model, {f"sequence_head/{path}": shape for path, shape in SHAPES.items()})
    assert untrained(made_model(head="two_layer")) == POOLER


def test_low_precision():
    model = made_model(dtype="mixed_bfloat16")
    np.testing.assert_allclose(model(INPUTS), expected_logits(), atol=0.3)
    check_gradients(model, TARGETS)


def test_dropout_of_the_head():
    check_dropout_of_head(made_model)


def test_compile_without_arguments():
    model = made_model()
    model.compile(run_eagerly=True)
    found = model.evaluate(INPUTS, TARGETS, verbose=0, return_dict=True)
    predicted = expected_logits() >= 0
    hits = (predicted & (TARGETS > 0)).sum()
    assert found["loss"] == pytest.approx(expected_losses().mean(), rel=1e-4)
    assert found["micro_f1"] == pytest.approx(2 * hits / (predicted.sum() + TARGETS.sum()))
    assert found["exact_match"] == pytest.approx((predicted == TARGETS).all(-1).mean())


def test_weights():
    model = made_model()
    model.compile(loss=SigmoidCrossEntropy([3.0, 1.0, 0.5]), metrics=[], run_eagerly=True)
    expected = expected_losses(np.array([3.0, 1.0, 0.5]))
    weights = np.array([0.5, 2.0, 0.0, 1.0])
    found = model.evaluate(INPUTS, TARGETS, sample_weight=weights, verbose=0)
    assert found == pytest.approx((expected * weights).mean(), rel=1e-4)


def test_a_step_is_the_one_of_the_gradient_by_hand():
    """One step of plain gradient descent on the last bias, whose gradient is (p - y) / C."""
    model = made_model()
    model.compile(keras.optimizers.SGD(0.5), run_eagerly=True)
    before = np.asarray(model.sequence_head.classifier.bias)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(INPUTS, TARGETS, batch_size=4, shuffle=False, verbose=0)
    p = 1 / (1 + np.exp(-expected_logits()))
    after = np.asarray(model.sequence_head.classifier.bias)
    expected = before - 0.5 * (p - TARGETS).mean(0) / 3
    np.testing.assert_allclose(after, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "loss",
    [
        "categorical_crossentropy",
        "sparse_categorical_crossentropy",
        "binary_crossentropy",
        SoftmaxCrossEntropy(),
        keras.losses.BinaryCrossentropy(),
        keras.losses.BinaryFocalCrossentropy(),
        keras.losses.binary_crossentropy,
        keras.losses.CategoricalCrossentropy(from_logits=True),
        keras.losses.KLDivergence(),
    ],
)
def test_losses_that_do_not_fit(loss):
    with pytest.raises(ValueError, match="`loss` must be of independent labels and of logits"):
        made_model().compile("sgd", loss)


@pytest.mark.parametrize(
    "loss",
    [
        keras.losses.BinaryCrossentropy(from_logits=True),
        keras.losses.BinaryFocalCrossentropy(from_logits=True),
        SigmoidCrossEntropy(),
        lambda y, z: keras.ops.mean((y - keras.ops.sigmoid(z)) ** 2, -1),
    ],
)
def test_losses_that_fit(loss):
    made_model().compile("sgd", loss, [keras.metrics.F1Score(), "mse"])


@pytest.mark.parametrize("metric", ["accuracy", "acc", "ce", "categorical_accuracy"])
def test_metrics_that_do_not_fit(metric):
    with pytest.raises(ValueError, match=rf"`metrics` must be of several labels.*'{metric}'"):
        made_model().compile(metrics=[metric])
    with pytest.raises(ValueError, match="SparseCategoricalAccuracy"):
        made_model().compile(weighted_metrics=[keras.metrics.SparseCategoricalAccuracy()])


def test_saved_and_loaded(tmp_path):
    model = made_model()
    model.compile(loss=SigmoidCrossEntropy([1.0, 2.0, 3.0], 0.1), run_eagerly=True)
    model.fit(INPUTS, TARGETS, verbose=0)
    again = saved_and_loaded(model, tmp_path)
    assert again.loss.get_config() == model.loss.get_config()
    scores = [m.evaluate(INPUTS, TARGETS, return_dict=True, verbose=0) for m in (model, again)]
    assert sorted(scores[1]) == ["exact_match", "loss", "micro_f1"] and scores[1] == scores[0]


def test_wrong_arguments():
    with pytest.raises(ValueError, match="`num_labels` must be at least 1. Received: num_labels=0"):
        MultiLabelClassification(small_bert(), 0)


def test_metrics_of_keras_by_hand():
    """With a threshold of logits they are what they are of the probabilities."""
    model = made_model()
    metrics = [keras.metrics.BinaryAccuracy(threshold=0.0), keras.metrics.Recall(thresholds=0.0)]
    model.compile(metrics=metrics, run_eagerly=True)
    found = model.evaluate(INPUTS, TARGETS, verbose=0)
    chosen, right = np.asarray(model(INPUTS)) > 0.0, TARGETS > 0.5
    assert found[1] == pytest.approx((chosen == right).mean())
    assert found[2] == pytest.approx((chosen & right).sum() / right.sum())
    for metric in ("binary_accuracy", keras.metrics.AUC(multi_label=True, num_labels=3)):
        with pytest.raises(ValueError, match="`metrics` must take logits"):
            model.compile(metrics=[metric])

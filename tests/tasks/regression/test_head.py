"""Regression on token ids."""

import numpy as np
import pytest

from kbert.tasks.regression.head import SequenceRegression
from tests import numpy_reference as reference
from tests.small_bert import INPUTS, MASK, SEGMENTS, assign_head, expected_outputs, small_bert
from tests.tasks.check_task import saved_and_loaded

ARRAYS = reference.random_arrays({"classifier/kernel": (12, 1), "classifier/bias": (1,)}, seed=3)
TARGETS = np.array([0.5, -1.0, 2.0, 0.0], "float32")


def made_model(**kwargs):
    encoder = small_bert(dropout=0.0, attention_dropout=0.0)
    model = SequenceRegression(encoder, dropout=0.0, **kwargs)
    assign_head(model, ARRAYS)
    return model


def expected_numbers():
    pooled = expected_outputs(segment_ids=SEGMENTS, padding_mask=MASK).pooled_output
    return reference.dense(pooled, ARRAYS["classifier/kernel"], ARRAYS["classifier/bias"])[:, 0]


def test_numbers():
    found = made_model()(INPUTS)
    assert found.shape == (4,) and found.dtype == "float32"
    np.testing.assert_allclose(found, expected_numbers(), atol=2e-5)


@pytest.mark.parametrize("column", [False, True])
def test_mean_squared_error(column):
    model = made_model()
    model.compile(run_eagerly=True)
    targets = TARGETS[:, None] if column else TARGETS
    found = model.evaluate(INPUTS, targets, verbose=0)
    assert found == pytest.approx(((expected_numbers() - TARGETS) ** 2).mean(), rel=1e-4)


def test_weights_are_weights_of_the_rows_and_metrics_count_rows():
    # Keras' losses average the last axis: of (B,) that would be the batch, before any weight.
    model = made_model()
    model.compile(metrics=["mae"], weighted_metrics=["mse"], run_eagerly=True)
    errors, weights = expected_numbers() - TARGETS, np.array([3.0, 0.0, 1.0, 0.5], "float32")
    found = model.evaluate(
        INPUTS, TARGETS, batch_size=3, sample_weight=weights, verbose=0, return_dict=True
    )
    assert found["loss"] == pytest.approx((errors**2 * weights).mean(), rel=1e-4)
    assert found["mae"] == pytest.approx(np.abs(errors).mean(), rel=1e-4)  # batches of 3 and 1
    assert found["mse"] == pytest.approx(np.average(errors**2, weights=weights), rel=1e-4)


def test_saved_and_loaded(tmp_path):
    model = made_model(head="pooler")
    model.compile(run_eagerly=True)
    model.fit(INPUTS, TARGETS, verbose=0)
    assert "num_labels" not in saved_and_loaded(model, tmp_path).get_config()

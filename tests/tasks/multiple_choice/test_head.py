"""Choices that compete in one softmax."""

import numpy as np
import pytest

from kbert.tasks.multiple_choice.head import ChoiceSelection
from tests import numpy_reference as reference
from tests.small_bert import INPUTS, MASK, SEGMENTS, assign_head, expected_outputs, small_bert
from tests.tasks.check_task import saved_and_loaded

ARRAYS = reference.random_arrays({"classifier/kernel": (12, 1), "classifier/bias": (1,)}, seed=3)
# Two questions of two choices each: the four rows of the small batch.
CHOICES = {name: array.reshape(2, 2, 6) for name, array in INPUTS.items()}
ANSWERS = np.array([1, 0])


def made_model(**kwargs):
    model = ChoiceSelection(small_bert(dropout=0.0, attention_dropout=0.0), dropout=0.0, **kwargs)
    assign_head(model, ARRAYS)
    return model


def expected_logits():
    pooled = expected_outputs(segment_ids=SEGMENTS, padding_mask=MASK).pooled_output
    logits = reference.dense(pooled, ARRAYS["classifier/kernel"], ARRAYS["classifier/bias"])
    return logits.reshape(2, 2)


def test_numbers():
    logits = made_model()(CHOICES)
    assert logits.shape == (2, 2) and logits.dtype == "float32"
    np.testing.assert_allclose(logits, expected_logits(), atol=2e-5)


def test_one_choice_more():
    three = {name: np.concatenate([x, x[:, :1]], axis=1) for name, x in CHOICES.items()}
    logits = np.asarray(made_model()(three))
    expected = expected_logits()
    np.testing.assert_allclose(logits, np.c_[expected, expected[:, :1]], atol=2e-5)


def test_without_segments_and_padding():
    tokens = {"token_ids": CHOICES["token_ids"]}
    pooled = expected_outputs().pooled_output
    logits = reference.dense(pooled, ARRAYS["classifier/kernel"], ARRAYS["classifier/bias"])
    np.testing.assert_allclose(made_model()(tokens), logits.reshape(2, 2), atol=2e-5)


def test_cross_entropy_over_the_choices():
    model = made_model()
    model.compile(run_eagerly=True)
    loss, accuracy = model.evaluate(CHOICES, ANSWERS, verbose=0)
    expected = reference.cross_entropy(expected_logits(), ANSWERS)
    assert loss == pytest.approx(expected.mean(), rel=1e-4)
    assert accuracy == (expected_logits().argmax(-1) == ANSWERS).mean()


def test_saved_and_loaded(tmp_path):
    model = made_model()
    model.compile(run_eagerly=True)
    model.fit(CHOICES, ANSWERS, verbose=0)
    assert "num_labels" not in saved_and_loaded(model, tmp_path, CHOICES).get_config()


def test_losses_and_metrics_of_probabilities_are_refused():
    model = made_model()
    with pytest.raises(ValueError, match="`loss` must take logits.*which takes probabilities"):
        model.compile(loss="sparse_categorical_crossentropy")
    with pytest.raises(ValueError, match="`metrics` must take logits.*which takes probabilities"):
        model.compile(metrics=["crossentropy"])

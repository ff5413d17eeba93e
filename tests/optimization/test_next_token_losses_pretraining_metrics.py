"""Metrics of pretraining over unequal batches: by hand, and by plain NumPy."""

import math

import keras
import numpy as np
import pytest

from kbert.optimization.next_token_losses import NextSentenceMetrics, PredictedTokenMetrics
from tests import numpy_reference as reference

draw = np.random.default_rng(4)
LOGITS = draw.normal(scale=2.0, size=(5, 3, 7)).astype("float32")
TARGETS = draw.integers(0, 7, (5, 3))
TARGETS[0] = TARGETS[1, 1:] = -1
COUNTS = TARGETS >= 0


def numbers(metric):
    return {name: float(value) for name, value in metric.result().items()}


def test_by_hand():
    # p = 1/2, 1/4, 1/4 for a truth of 0, and 1/8, 1/8, 3/4 for one of 1.
    logits = np.log([[[1 / 2, 1 / 4, 1 / 4], [1 / 8, 1 / 8, 3 / 4], [1, 2, 3]]])
    metric = PredictedTokenMetrics()
    assert numbers(metric) == {"masked_loss": 0.0, "masked_accuracy": 0.0, "perplexity": 1.0}
    metric.update_state(np.array([[0, 1, -1]]), logits.astype("float32"))
    found = numbers(metric)
    assert found["masked_loss"] == pytest.approx(math.log(2) * (1 + 3) / 2, rel=1e-6)
    assert found["masked_accuracy"] == 0.5
    assert found["perplexity"] == pytest.approx(4.0, rel=1e-6)  # 2^2
    metric.reset_state()
    assert numbers(metric)["masked_loss"] == 0.0


def test_tokens_count_alike_whatever_their_batch():
    metric = PredictedTokenMetrics("next_token")
    for rows in (slice(0, 1), slice(1, 2), slice(2, 5)):  # 0, 1 and 9 tokens
        metric.update_state(TARGETS[rows], LOGITS[rows])
    losses = -np.take_along_axis(
        reference.log_softmax(LOGITS), np.maximum(TARGETS, 0)[..., None], axis=-1
    )[..., 0][COUNTS]
    assert len(losses) == 10
    found = numbers(metric)
    assert sorted(found) == ["next_token_accuracy", "next_token_loss", "perplexity"]
    assert found["next_token_loss"] == pytest.approx(losses.mean(), rel=1e-6)
    assert found["perplexity"] == pytest.approx(math.exp(losses.mean()), rel=1e-6)
    right = (LOGITS.argmax(-1) == TARGETS)[COUNTS]
    assert found["next_token_accuracy"] == pytest.approx(right.mean())


def test_pairs():
    # By hand: odds of 3 to 1 for the truth, 1 to 1, and 1 to 3 against it.
    logits = np.log([[3.0, 1.0], [1.0, 1.0], [3.0, 1.0]]).astype("float32")
    metric = NextSentenceMetrics()
    assert numbers(metric) == {"next_sentence_loss": 0.0, "next_sentence_accuracy": 0.0}
    metric.update_state(np.array([0, 0]), logits[:2])
    metric.update_state(np.array([1]), logits[2:])
    found = numbers(metric)
    expected = (math.log(4 / 3) + math.log(2) + math.log(4)) / 3
    assert found["next_sentence_loss"] == pytest.approx(expected, rel=1e-6)
    assert found["next_sentence_accuracy"] == pytest.approx(2 / 3)  # a tie has no likelier one


def test_weights_of_sequences():
    metric = PredictedTokenMetrics()
    weights = np.array([1.0, 5.0, 0.0, 0.5, 0.0])
    metric.update_state(TARGETS, LOGITS, weights)
    right = (LOGITS.argmax(-1) == TARGETS) * COUNTS
    counted = (weights[:, None] * COUNTS).sum()
    expected = (weights[:, None] * right).sum() / counted
    assert numbers(metric)["masked_accuracy"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("metric", [PredictedTokenMetrics("x"), NextSentenceMetrics()])
def test_configuration(metric):
    stored = keras.saving.serialize_keras_object(metric)
    again = keras.saving.deserialize_keras_object(stored)
    assert type(again) is type(metric) and again.get_config() == metric.get_config()
    assert list(again.result()) == list(metric.result())

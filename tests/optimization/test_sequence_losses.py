"""Losses and metrics over positions, by hand and by plain NumPy in double precision."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.optimization.sequence_losses import (
    SpanCrossEntropy,
    TokenAccuracy,
    TokenCrossEntropy,
    span_accuracy,
    token_distribution,
)
from tests import numpy_reference as reference

draw = np.random.default_rng(2)
SPAN_LOGITS = draw.normal(scale=2.0, size=(5, 7, 2)).astype("float32")
# Row by row: one span; two that share nothing; two that begin together; no answer; the same twice.
SPANS = np.array(
    [
        [[1, 3], [-1, -1], [-1, -1]],
        [[1, 3], [4, 4], [-1, -1]],
        [[2, 2], [2, 5], [3, 5]],
        [[0, 0], [-1, -1], [-1, -1]],
        [[6, 6], [6, 6], [-1, -1]],
    ]
)
TOKEN_LOGITS = draw.normal(scale=2.0, size=(4, 6, 3)).astype("float32")
TOKEN_IDS = np.array([[0, 1, 2, -1, -1, -1], [-1] * 6, [2] * 6, [-1, 0, -1, 1, 1, -1]])
SHARES = np.where((TOKEN_IDS >= 0)[..., None], draw.dirichlet(np.ones(3), (4, 6)), 0.0)


def span_losses(spans: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """-log of the probability that the start is one of those given, and the same of the end.

    Written from Devlin et al. 2019, section 4.2, and for several from Clark and Gardner 2018,
    section 3.3 (as in run_squad's sum, not its mean, of the two ends).
    """
    losses = []
    for of_row, row in zip(spans, logits.astype("float64")):
        loss = 0.0
        for side in range(2):
            exponentials = np.exp(row[:, side])
            right = {int(pair[side]) for pair in of_row if pair[side] >= 0}
            share = sum(exponentials[position] for position in right) / exponentials.sum()
            loss -= math.log(share)
        losses.append(loss)
    return np.array(losses)


def token_sums(distribution: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """-sum_i sum_j t_ij log p_ij of each row."""
    return -(distribution * reference.log_softmax(logits)).sum(axis=(1, 2))


def one_hot(ids: np.ndarray) -> np.ndarray:
    found = np.zeros((*ids.shape, 3))
    for row, column in np.argwhere(ids >= 0):
        found[row, column, ids[row, column]] = 1.0
    return found


# --- spans -----------------------------------------------------------------------------------


def test_span_by_hand() -> None:
    logits = np.log([[[0.5, 0.1], [0.25, 0.2], [0.25, 0.7]]])
    found = SpanCrossEntropy()(np.array([[1, 2]]), logits)
    assert float(found) == pytest.approx(-math.log(0.25) - math.log(0.7), rel=1e-6)
    # Either start, either end: 1/4 + 1/2 and 0.7 + 0.1.
    several = SpanCrossEntropy()(np.array([[[1, 2], [0, 0]]]), logits)
    assert float(several) == pytest.approx(-math.log(0.75) - math.log(0.8), rel=1e-6)
    # Two spans that begin alike have one start: 1/4, not twice that.
    shared = SpanCrossEntropy()(np.array([[[1, 2], [1, 1]]]), logits)
    assert float(shared) == pytest.approx(-math.log(0.25) - math.log(0.9), rel=1e-6)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_span_reference(dtype: str) -> None:
    expected = span_losses(SPANS, SPAN_LOGITS)
    found = SpanCrossEntropy(reduction="none")(SPANS.astype(dtype), SPAN_LOGITS)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    mean = SpanCrossEntropy()(SPANS.astype(dtype), SPAN_LOGITS)
    assert float(mean) == pytest.approx(expected.mean(), rel=1e-5)
    assert (np.asarray(found) > 0).all()


def test_span_pairs_are_spans_of_one() -> None:
    one = SpanCrossEntropy(reduction="none")(SPANS[:, 0], SPAN_LOGITS)
    same = SpanCrossEntropy(reduction="none")(SPANS[:, :1], SPAN_LOGITS)
    np.testing.assert_array_equal(one, same)
    np.testing.assert_allclose(one, span_losses(SPANS[:, :1], SPAN_LOGITS), rtol=1e-5)


def test_span_gradient_is_probability_less_share() -> None:
    """Of -log sum_{i in A} p_i by the logits: p_j - p_j [j in A] / sum_{i in A} p_i."""
    logits = tf.constant(SPAN_LOGITS)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = SpanCrossEntropy(reduction="sum")(SPANS, logits)
    found = tape.gradient(loss, logits).numpy()
    for row in range(len(SPANS)):
        for side in range(2):
            p = reference.softmax(SPAN_LOGITS[row, :, side])
            right = sorted({int(i) for i in SPANS[row, :, side] if i >= 0})
            share = np.zeros_like(p)
            share[right] = p[right] / p[right].sum()
            np.testing.assert_allclose(found[row, :, side], p - share, atol=1e-5)


def test_span_padding_counts_nothing() -> None:
    padded = np.concatenate([SPAN_LOGITS, np.full((5, 3, 2), -1e9, "float32")], axis=1)
    found = SpanCrossEntropy(reduction="none")(SPANS, padded)
    np.testing.assert_allclose(found, span_losses(SPANS, SPAN_LOGITS), rtol=1e-5, atol=1e-6)


def test_span_loss_in_low_precision_and_with_unknown_sizes() -> None:
    logits = keras.ops.cast(SPAN_LOGITS, "bfloat16")
    found = SpanCrossEntropy(reduction="none")(SPANS, logits)
    assert found.dtype == "float32"
    exact = np.asarray(keras.ops.cast(logits, "float32"))
    np.testing.assert_allclose(found, span_losses(SPANS, exact), rtol=1e-4, atol=1e-5)
    specs = [tf.TensorSpec((None, None, 2), tf.int32), tf.TensorSpec((None, None, 2))]
    graph = tf.function(SpanCrossEntropy(reduction="none"), input_signature=specs)
    found = graph(tf.constant(SPANS, tf.int32), tf.constant(SPAN_LOGITS))
    np.testing.assert_allclose(found, span_losses(SPANS, SPAN_LOGITS), rtol=1e-5, atol=1e-6)


def test_span_accuracy_by_hand() -> None:
    logits = np.zeros((3, 4, 2), "float32")
    logits[:, 1, 0] = logits[:, 3, 1] = 1.0  # start 1, end 3 everywhere
    for spans in ([[1, 3], [1, 2], [0, 3]], [[[2, 2], [1, 3]], [[1, 2], [-1, -1]], [[0, 3]] * 2]):
        np.testing.assert_array_equal(span_accuracy(np.array(spans), logits), [1, 0, 0])
    # The likeliest ends may come from two answers.
    np.testing.assert_array_equal(
        span_accuracy(np.array([[[1, 1], [2, 3]]]), logits[:1]), [1]
    )


# --- tokens ----------------------------------------------------------------------------------


def test_tokens_by_hand() -> None:
    logits = np.log([[[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]], [[0.5, 0.3, 0.2], [0.6, 0.2, 0.2]]])
    ids = np.array([[1, 2], [0, -1]])
    sums = [-math.log(0.25) - math.log(0.7), -math.log(0.5)]
    found = TokenCrossEntropy("sequence")(ids, logits)
    assert float(found) == pytest.approx(sum(sums) / 2, rel=1e-6)
    found = TokenCrossEntropy("token")(ids, logits)
    assert float(found) == pytest.approx(sum(sums) / 3, rel=1e-6)
    # Two annotators say B, one says O.
    shares = np.zeros((2, 2, 3))
    shares[0, 0] = [2 / 3, 0.0, 1 / 3]
    found = TokenCrossEntropy("sequence", reduction="sum")(shares, logits)
    expected = -2 / 3 * math.log(0.5) - 1 / 3 * math.log(0.25)
    assert float(found) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("soft", [False, True])
def test_token_reference(soft: bool) -> None:
    targets = SHARES if soft else TOKEN_IDS
    sums = token_sums(SHARES if soft else one_hot(TOKEN_IDS), TOKEN_LOGITS)
    found = TokenCrossEntropy("sequence", reduction="none")(targets, TOKEN_LOGITS)
    np.testing.assert_allclose(found, sums, rtol=1e-5)
    assert float(found[1]) == 0.0  # a row without a token that counts
    found = TokenCrossEntropy("sequence")(targets, TOKEN_LOGITS)
    assert float(found) == pytest.approx(sums.mean(), rel=1e-5)
    found = TokenCrossEntropy()(targets, TOKEN_LOGITS)
    assert float(found) == pytest.approx(sums.sum() / 12, rel=1e-5)  # 3 + 0 + 6 + 3 tokens


@pytest.mark.parametrize("per", ["sequence", "token"])
def test_no_token_counts(per: str) -> None:
    logits = tf.constant(TOKEN_LOGITS)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = TokenCrossEntropy(per)(np.full((4, 6), -1), logits)
    assert float(loss) == 0.0
    assert not tape.gradient(loss, logits).numpy().any()


def test_tokens_that_count_nothing_have_no_gradient() -> None:
    logits = tf.constant(TOKEN_LOGITS)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = TokenCrossEntropy("sequence", reduction="sum")(TOKEN_IDS, logits)
    found = tape.gradient(loss, logits).numpy()
    counts = (TOKEN_IDS >= 0)[..., None]
    expected = (reference.softmax(TOKEN_LOGITS) - one_hot(TOKEN_IDS)) * counts
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_distributions() -> None:
    found = token_distribution(tf.constant(TOKEN_IDS), TOKEN_LOGITS)
    assert found.dtype == "float32"
    np.testing.assert_array_equal(found, one_hot(TOKEN_IDS))
    np.testing.assert_allclose(token_distribution(SHARES, TOKEN_LOGITS), SHARES, rtol=1e-6)


def test_token_accuracy_by_hand() -> None:
    logits = np.zeros((2, 3, 3), "float32")
    logits[..., 1] = 1.0  # every token looks like class 1
    metric = TokenAccuracy()
    assert float(metric.result()) == 0.0
    metric.update_state(np.array([[1, 0, -1], [-1, -1, -1]]), logits)
    assert float(metric.result()) == pytest.approx(1 / 2)
    metric.update_state(np.array([[1, 1, 1], [1, 1, -1]]), logits)
    assert float(metric.result()) == pytest.approx(6 / 7)
    metric.reset_state()
    metric.update_state(np.array([[1, 0, 0], [1, -1, -1]]), logits, sample_weight=[0.5, 3.0])
    assert float(metric.result()) == pytest.approx((0.5 + 3.0) / (1.5 + 3.0))
    metric.reset_state()
    shares = np.array([[[0.2, 0.5, 0.3], [0.6, 0.4, 0.0], [0.0, 0.0, 0.0]]])
    metric.update_state(shares, logits[:1])
    assert float(metric.result()) == pytest.approx(1 / 2)
    assert metric.name == "accuracy"


# --- ritual ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "loss, y, logits",
    [
        (SpanCrossEntropy(name="span", reduction="sum"), SPANS, SPAN_LOGITS),
        (TokenCrossEntropy("sequence", name="tokens", reduction="sum"), TOKEN_IDS, TOKEN_LOGITS),
    ],
)
def test_configuration(loss, y, logits) -> None:
    stored = keras.saving.serialize_keras_object(loss)
    assert stored["registered_name"] == f"kbert>{type(loss).__name__}"
    again = keras.saving.deserialize_keras_object(stored)
    assert again.get_config() == loss.get_config()
    assert (again.name, again.reduction) == (loss.name, "sum")
    np.testing.assert_allclose(again(y, logits), loss(y, logits))


def test_wrong_argument() -> None:
    message = '`per` must be "sequence" or "token". Received: per=\'batch\''
    with pytest.raises(ValueError, match=message):
        TokenCrossEntropy(per="batch")

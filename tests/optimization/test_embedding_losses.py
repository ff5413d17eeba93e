"""Losses over vectors, by hand and against NumPy."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.optimization.embedding_losses import (
    ByTargets,
    CosineRegression,
    MultipleNegatives,
    TripletMargin,
    cosines,
    unit_length,
)

# Cosines by hand: of the first example 1 with its own text, 0 with that of the other.
APART = np.array([[[2.0, 0.0], [1.0, 0.0]], [[0.0, 3.0], [0.0, 1.0]]], "float32")
VECTORS = np.random.default_rng(3).normal(size=(5, 3, 4)).astype("float32")


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def contrastive(vectors, scale, excluded=None):
    """Henderson et al. 2017, section 4.4, example by example."""
    vectors = unit(vectors.astype("float64"))
    candidates = np.concatenate([vectors[:, k] for k in range(1, vectors.shape[1])])
    losses = []
    for i, row in enumerate(vectors):
        scores = scale * candidates @ row[0]
        kept = [j for j in range(len(scores)) if j == i or not (excluded or (lambda *_: 0))(i, j)]
        losses.append(np.log(np.exp(scores[kept]).sum()) - scores[i])
    return np.array(losses)


def test_multiple_negatives_by_hand():
    expected = math.log(1 + math.exp(-1.0))  # cosines of 1 and 0
    assert float(MultipleNegatives(1.0)(np.zeros(2), APART)) == pytest.approx(expected, rel=1e-6)
    dots = MultipleNegatives(1.0, "dot", reduction="none")(np.zeros(2), APART)
    by_hand = [math.log(1 + math.exp(-2)), math.log(1 + math.exp(-3))]
    np.testing.assert_allclose(dots, by_hand, rtol=1e-6)


@pytest.mark.parametrize("count", [2, 3])
def test_multiple_negatives_with_and_without_hard_ones(count):
    vectors = VECTORS[:, :count]
    found = MultipleNegatives(reduction="none")(np.zeros((5, 1)), vectors)
    np.testing.assert_allclose(found, contrastive(vectors, 20.0), rtol=1e-4, atol=1e-5)


def test_what_is_known_to_fit_is_no_negative():
    # The texts of examples 0 and 3 are equal, as are the anchors of 1 and 2; hard negative 4 is
    # the text of example 1.
    numbers = np.array([[0, 1, 20], [2, 3, 21], [2, 4, 22], [5, 1, 23], [6, 7, 3]])
    known = {(0, 3), (3, 0), (1, 2), (2, 1), (1, 9)}
    found = MultipleNegatives(reduction="none")(numbers, VECTORS)
    expected = contrastive(VECTORS, 20.0, lambda i, j: (i, j) in known)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    # Text 4, which fits anchor 2, is the second text of example 3 and the hard negative of 4, too.
    numbers = np.array([[2, 3, 20], [2, 4, 21], [5, 6, 22], [7, 4, 23], [8, 9, 4]])
    known = {(0, 1), (1, 0), (0, 3), (1, 3), (0, 9), (1, 9), (3, 1), (3, 9)}
    found = MultipleNegatives(reduction="none")(numbers, VECTORS)
    expected = contrastive(VECTORS, 20.0, lambda i, j: (i, j) in known)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    plain = MultipleNegatives(ignore_duplicates=False, reduction="none")(numbers, VECTORS)
    np.testing.assert_allclose(plain, contrastive(VECTORS, 20.0), rtol=1e-4, atol=1e-5)


def test_cosine_regression_by_hand():
    pairs = np.array([[[1.0, 0.0], [3.0, 0.0]], [[1.0, 0.0], [0.0, 2.0]]], "float32")
    found = CosineRegression(reduction="none")(np.array([0.5, 0.25]), pairs)
    np.testing.assert_allclose(found, [0.25, 0.0625], rtol=1e-6)
    scaled = CosineRegression(1.0, 5.0, reduction="none")(np.array([[5.0], [3.0]]), pairs)
    np.testing.assert_allclose(scaled, [0.0, 0.25], atol=1e-6)


def test_scores_that_are_no_cosines():
    CosineRegression(1, 5).check_scores(-3.0, 5.0)
    for scores in ((-3.5, 5.0), (1.0, 5.5)):
        with pytest.raises(ValueError, match=r"scores in \[-3, 5\], .* Received: scores from"):
            CosineRegression(1, 5).check_scores(*scores)


def test_triplets_by_hand():
    # Distances 1 and 3, then 2 and 0.
    rows = np.array([[[0.0, 0], [1, 0], [0, 3]], [[0, 0], [0, 2], [0, 0]]], "float32")
    found = TripletMargin(2.5, reduction="none")(np.zeros(2), rows)
    np.testing.assert_allclose(found, [0.5, 4.5], rtol=1e-6)
    two = np.concatenate([rows, rows[:, :1]], axis=1)  # a further text at the anchor itself
    found = TripletMargin(2.5, reduction="none")(np.zeros(2), two)
    np.testing.assert_allclose(found, [(0.5 + 3.5) / 2, 4.5], rtol=1e-6)


@pytest.mark.parametrize(
    "loss", [MultipleNegatives(), CosineRegression(), TripletMargin()], ids=lambda loss: loss.name
)
def test_gradients_are_finite_where_vectors_are_0_or_equal(loss):
    vectors = tf.constant(np.zeros((2, 3, 4)) + np.array([[[0.0]], [[1.0]]]), tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(vectors)
        value = loss(np.ones(2, "float32"), vectors)
    assert np.isfinite(value) and np.isfinite(tape.gradient(value, vectors)).all()


def test_the_targets_decide():
    pairs, scores = VECTORS[:, :2], np.linspace(0, 1, 5)
    assert float(ByTargets()(scores, pairs)) == float(CosineRegression()(scores, pairs))
    numbers = np.arange(10).reshape(5, 2)
    assert float(ByTargets()(numbers, pairs)) == float(MultipleNegatives()(numbers, pairs))


def test_unit_length():
    found = unit_length(np.array([[3.0, 4.0], [0.0, 0.0]]))
    np.testing.assert_allclose(found, [[0.6, 0.8], [0, 0]])
    assert float(cosines(np.array([1.0, 1.0]), np.array([2.0, 0.0]))) == pytest.approx(0.5**0.5)


@pytest.mark.parametrize(
    "loss",
    [
        MultipleNegatives(10.0, "dot", False, 4),
        CosineRegression(1, 5),
        TripletMargin(0.5),
        ByTargets(),
    ],
    ids=lambda loss: loss.name,
)
def test_configurations(loss):
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert type(again) is type(loss) and again.get_config() == loss.get_config()


@pytest.mark.parametrize(
    "made, message",
    [
        (lambda: MultipleNegatives(0), "`scale` must be above 0. Received: scale=0"),
        (lambda: MultipleNegatives(similarity="l2"), r"`similarity` must be one of \['cosine', '"),
        (lambda: MultipleNegatives(chunk_rows=0), "`chunk_rows` must be at least 1. Received: ch"),
        (lambda: CosineRegression(1, 1), "`lowest` must be below `highest`. Received: lowest=1"),
        (lambda: TripletMargin(0), "`margin` must be above 0. Received: margin=0"),
        (lambda: TripletMargin()(np.zeros(5), VECTORS[:, :2]), "three vectors an example.* 2$"),
    ],
)
def test_errors(made, message):
    with pytest.raises(ValueError, match=message):
        made()

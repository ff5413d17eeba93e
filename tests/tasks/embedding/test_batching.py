"""Batches of texts to embed: what `fit`, `predict` and calls take."""

import numpy as np
import pytest
import tensorflow as tf
from keras import tree

from kbert.optimization.embedding_losses import CosineRegression, MultipleNegatives
from tests.small_pipelines import TEXTS, random_texts, small_embedder
from tests.training.eager_steps import eager_steps

A, B = random_texts(9, 1), random_texts(9, 2)
SCORES = np.linspace(0, 1, 9).astype("float32")


@pytest.fixture(scope="module")
def model():
    made = small_embedder()
    made.compile()
    return made


@pytest.fixture(scope="module")
def vectors(model):
    return np.stack([model.predict(A), model.predict(B)], axis=1)


def test_several_columns_are_predicted_row_by_row(model, vectors):
    np.testing.assert_allclose(model.predict((A, B)), vectors, atol=1e-6)
    assert model.predict(([], [])).shape == (0, 2, 16)


def test_calls_on_texts(model, vectors):
    np.testing.assert_allclose(model(A), vectors[:, 0], atol=1e-6)
    np.testing.assert_allclose(model((A, B)), vectors, atol=1e-6)
    tensors = {"text_b": tf.constant(B), "text_a": tf.constant(A)}
    np.testing.assert_allclose(model(tensors), vectors, atol=1e-6)


def test_scores_and_texts_as_targets(model, vectors):
    by_scores = float(CosineRegression()(SCORES, vectors))
    for y in (SCORES, SCORES[:, None], SCORES.tolist()):
        with eager_steps():
            found = model.evaluate((A, B), y, verbose=0)
        assert found == pytest.approx(by_scores, rel=1e-4)
    texts = {text: i for i, text in enumerate(dict.fromkeys([*A, *B]))}
    numbers = np.array([[texts[a], texts[b]] for a, b in zip(A, B)])
    by_texts = float(MultipleNegatives()(numbers, vectors))
    assert model.evaluate((A, B), verbose=0) == pytest.approx(by_texts, rel=1e-4)
    dataset = tf.data.Dataset.from_tensor_slices((A, B)).batch(9)
    pairs = dataset.map(lambda a, b: ((a, b),))
    assert model.evaluate(pairs, verbose=0) == pytest.approx(by_texts, rel=1e-4)
    assert model.test_on_batch((A, B)) == pytest.approx(by_texts, rel=1e-4)


def test_weights_of_examples(model, vectors):
    weights = np.arange(9.0)
    errors = CosineRegression(reduction="none")(SCORES, vectors)
    found = model.evaluate((A, B), SCORES, sample_weight=weights, verbose=0)
    assert found == pytest.approx(float(np.mean(errors * weights)), rel=1e-4)


def test_predictions_are_in_order_whatever_the_lengths(model):
    found, truncated = model.batching.predict_texts(TEXTS)
    np.testing.assert_allclose(found, [model(one)[0] for one in ([t] for t in TEXTS)], atol=1e-5)
    assert truncated == model.pack(TEXTS).truncated.tolist()


@pytest.mark.parametrize(
    "x, y, message",
    [
        (A, None, "`x` must be pairs of texts to learn from, .* Received: single texts"),
        ((A, B), [1.0], "`y` must have one entry a text. Received: 1 for 9 texts"),
        ((A, B), np.zeros((9, 2)), r"`y` must have one score an example. Received: shape \(9, 2\)"),
        (
            (A, B),
            np.arange(9) * 0.5,
            r"`y` must hold scores in \[-1, 1\], which become .* Received: scores from 0 to 4",
        ),
        ((A, B), [np.nan] * 9, "`y` must hold finite numbers. Received: "),
        (([], []), None, "`x` must hold at least one text. Received: none"),
    ],
)
def test_wrong_examples(model, x, y, message):
    with pytest.raises(ValueError, match=message):
        model.fit(x, y, verbose=0)


def test_answers_are_of_one_column(model):
    with pytest.raises(ValueError, match="`x` must be one list. Received: 2 columns"):
        model.answers((A, B))
    with pytest.raises(ValueError, match="`x` must be texts, .* a list that begins with 1"):
        model.answers([1, 2])


def test_validation_of_texts_that_need_no_targets(model):
    found = []
    for held_out in (((A, B),), ((A, B), None)):
        given = model.batching.fit_arguments((A, B), None, None, None, held_out, True, None, 0)
        found.append(list(given["validation_data"].as_numpy_iterator()))
    assert sum(len(targets) for _, targets in found[0]) == len(A)
    tree.map_structure(np.testing.assert_array_equal, *found)

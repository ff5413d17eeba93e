"""Regressor: numbers for texts."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.optimization.adamw import AdamW
from tests import numpy_reference as reference
from tests.small_pipelines import TEXTS, VOCABULARY, computed, random_texts, small_regressor
from tests.training.eager_steps import eager_steps

TEXT = random_texts(30, seed=1)
TARGETS = np.random.default_rng(2).normal(size=30)


@pytest.fixture(scope="module")
def model():
    made = small_regressor()
    made.compile()
    return made


def test_the_whole_way_by_the_reference(model):
    tokens = ["[CLS]", "a", "good", "film", "[SEP]"]
    ids = np.array([[VOCABULARY.id_of(token) for token in tokens]])
    pooled = reference.bert(model.encoder.to_checkpoint().arrays, ids, 1, 2).pooled_output
    head = model.sequence_head.classifier
    expected = reference.dense(pooled, np.asarray(head.kernel), np.asarray(head.bias))[:, 0]
    np.testing.assert_allclose(model.predict(["A good film"]), expected, atol=1e-5)


def test_predictions_and_graph_functions_agree(model):
    predicted = model.predict(TEXTS)
    assert predicted.shape == (len(TEXTS),) and predicted.dtype == "float32"
    texts = tf.constant([t.encode() if isinstance(t, str) else t for t in TEXTS])
    (score, specs), (score_tokens, token_specs) = model.signatures().values()
    found = tf.function(score, input_signature=specs, autograph=False)(texts)
    np.testing.assert_allclose(found["score"], predicted, atol=1e-5)
    np.testing.assert_array_equal(found["truncated"], model.pack(TEXTS).truncated)
    packed = model.preprocess(texts)
    function = tf.function(score_tokens, input_signature=token_specs, autograph=False)
    found = function(packed.token_ids, packed.segment_ids, packed.lengths)
    assert list(found) == ["score"]
    np.testing.assert_allclose(found["score"], predicted, atol=1e-5)
    rows = model.answers(TEXTS)
    assert [row["score"] for row in rows] == pytest.approx(predicted.tolist())
    assert [row["truncated"] for row in rows] == model.pack(TEXTS).truncated.tolist()
    assert model.predict([]).shape == (0,) and model.answers([]) == []


def test_evaluation(model):
    errors = (model.predict(TEXT) - TARGETS) ** 2
    weights = np.arange(30.0)
    with eager_steps():
        for y in (TARGETS, TARGETS[:, None], TARGETS.tolist()):
            assert model.evaluate(TEXT, y, verbose=0) == pytest.approx(errors.mean(), rel=1e-4)
        found = model.evaluate(TEXT, TARGETS, sample_weight=weights, verbose=0)
    assert found == pytest.approx((errors * weights).mean(), rel=1e-4)


def test_learning_saving_and_loading(tmp_path):
    model = small_regressor()
    model.compile(AdamW(5e-3))
    texts, targets = ["good", "a good film", "bad", "a bad film"], [1.0, 1.0, -1.0, -1.0]
    losses = model.fit(texts, targets, epochs=15, verbose=0).history["loss"]
    assert losses[-1] < 0.1 * losses[0]
    np.testing.assert_allclose(computed(model, texts), targets, atol=0.7)
    model.save(tmp_path / "model.keras")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = keras.models.load_model(tmp_path / "model.keras")
    assert again.get_config() == model.get_config()
    np.testing.assert_allclose(computed(again, TEXT), computed(model, TEXT), atol=1e-5)
    assert int(again.optimizer.iterations) == 15


@pytest.mark.parametrize(
    "y, message",
    [
        (["high", "low"], r"`y` must hold finite numbers. Received: \['high', 'low'\]"),
        ([1.0, float("nan")], r"`y` must hold finite numbers. Received: \[1.0, nan\]"),
        ([1.0], "`y` must have one entry a text. Received: 1 for 2 texts"),
        ([[1.0, 2.0]] * 2, r"`y` must have one number a text. Received: shape \(2, 2\)"),
    ],
)
def test_wrong_targets(model, y, message):
    with pytest.raises(ValueError, match=message):
        model.fit(["a", "b"], y, verbose=0)


def test_ranking():
    model = small_regressor(pair=True)
    documents = [*random_texts(9, seed=3), "a film", "a film"]
    scores = model.predict((["very good"] * 11, documents))
    found = model.rank("very good", documents)
    assert [one["index"] for one in found] == np.argsort(-scores, kind="stable").tolist()
    assert [one["score"] for one in found] == pytest.approx(sorted(scores, reverse=True), rel=1e-5)
    assert model.rank("very good", documents, top_k=3) == found[:3]
    assert model.rank("very good", []) == []


@pytest.mark.parametrize(
    "pair, arguments, error, message",
    [
        (False, ("a", ["b"]), ValueError, "`pair` must be True for a model that ranks"),
        (True, ("a", ["b"], 0), ValueError, "`top_k` must be at least 1, or None. Received"),
        (True, (3, ["b"]), TypeError, "`query` must be str or bytes. Received: 3"),
        (True, ("a", [None]), TypeError, r"`text_b\[0\]` must be str or bytes. Received: None"),
    ],
)
def test_what_cannot_be_ranked(pair, arguments, error, message):
    with pytest.raises(error, match=message):
        small_regressor(pair=pair).rank(*arguments)

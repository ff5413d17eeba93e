"""Keras' verbs on one batch, and a call of the model, on raw texts."""

import numpy as np
import pytest

from tests.small_pipelines import small_classifier, small_question_answerer

TEXTS, NAMES = ["a good film", "bad", "the film"], ["yes", "no", "no"]
ASKED = {"question": ["who"], "context": ["a good film"]}


@pytest.fixture(scope="module")
def model():
    made = small_classifier()
    made.compile("sgd", run_eagerly=True)
    return made


@pytest.fixture(scope="module")
def reader():
    made = small_question_answerer()
    made.compile("sgd", run_eagerly=True)
    return made


def losses(model):
    """What each text loses, by hand from the probabilities."""
    probabilities = np.asarray(model.scores(model.batching.call_inputs(TEXTS)))
    return -np.log(probabilities[np.arange(3), [1, 0, 0]])


def test_measures_of_one_batch(model):
    expected = losses(model)
    assert model.test_on_batch(TEXTS, NAMES)[0] == pytest.approx(expected.mean(), rel=1e-4)
    weights = [1.0, 0.0, 2.0]
    found = model.test_on_batch(TEXTS, NAMES, weights, return_dict=True)["loss"]
    assert found == pytest.approx((expected * weights).mean(), rel=1e-4)


def test_a_step_on_one_batch(model):
    expected = losses(model)
    by_name = {"yes": 3.0}
    found = model.train_on_batch(TEXTS, NAMES, class_weight=by_name, return_dict=True)["loss"]
    assert found == pytest.approx((expected * [3.0, 1.0, 1.0]).mean(), rel=1e-4)
    assert losses(model).mean() < expected.mean()


def test_predictions_of_one_batch(model, reader, monkeypatch):
    ids = model.batching.call_inputs(TEXTS)
    np.testing.assert_allclose(model.predict_on_batch(TEXTS), model.scores(ids), atol=1e-5)
    np.testing.assert_allclose(model.predict_on_batch(ids), model.scores(ids), atol=1e-6)
    monkeypatch.setattr(reader, "predict", lambda x: ["answers", x])
    assert reader.predict_on_batch(ASKED) == ["answers", ASKED]


def test_texts_that_become_windows(reader):
    answers = [[("good", 2)]]
    inputs, targets = reader.batching.one_batch(ASKED, answers, None)
    # [CLS] w ##h ##o [SEP] a good: the answer is token 6.
    assert inputs["token_ids"].shape[0] == 1 and targets.numpy().tolist() == [[[6, 6]]]
    expected = reader.test_on_batch(inputs, targets)[0]
    assert reader.test_on_batch(ASKED, answers)[0] == pytest.approx(expected, rel=1e-6)
    with pytest.raises(ValueError, match="`sample_weight` must be None .* Received: 1 weights"):
        reader.test_on_batch(ASKED, answers, [1.0])


def test_a_call_that_cannot_take_texts(reader):
    message = "must be token ids for the QuestionAnswerer. Received: texts, which `predict` and"
    with pytest.raises(ValueError, match=message):
        reader(ASKED)

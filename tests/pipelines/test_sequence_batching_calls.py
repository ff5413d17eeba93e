"""Batches of token ids from raw strings, and a call of the model on strings."""

import numpy as np
import pytest
import tensorflow as tf

from kbert.pipelines.signatures import model_inputs
from kbert.pipelines.text_inputs import weight_array
from tests.small_pipelines import small_classifier, small_multiple_choice, small_regressor

TEXTS, OTHERS = ["a good film", "bad"], ["the film", "very"]


@pytest.fixture(scope="module")
def model():
    return small_classifier()


def test_a_call_on_texts_is_the_call_on_their_token_ids(model):
    expected = model(model_inputs(model.preprocess(tf.constant(TEXTS))))
    for x in (TEXTS, np.array(TEXTS), {"text": TEXTS}, tf.constant(TEXTS)):
        np.testing.assert_array_equal(model(x), expected)
    graph = tf.function(lambda texts: model.batching.call_inputs(texts), autograph=False)
    np.testing.assert_array_equal(
        graph(tf.constant(TEXTS))["token_ids"], model.batching.call_inputs(TEXTS)["token_ids"]
    )


def test_a_call_on_pairs():
    model = small_regressor(pair=True)
    expected = model(model_inputs(model.preprocess(*map(tf.constant, (TEXTS, OTHERS)))))
    for x in ((TEXTS, OTHERS), (tf.constant(TEXTS), tf.constant(OTHERS))):
        np.testing.assert_array_equal(model(x), expected)
    for x in (TEXTS, tf.constant(TEXTS)):
        with pytest.raises(ValueError, match="`x` must be pairs of texts"):
            model(x)


def test_a_call_on_choices():
    model = small_multiple_choice()
    choices = tf.constant([TEXTS, OTHERS])
    expected = model(model_inputs(model.preprocess(tf.constant(TEXTS), choices)))
    np.testing.assert_array_equal(model((TEXTS, [TEXTS, OTHERS])), expected)


def test_weights_become_an_array():
    assert weight_array(None) is None
    found = weight_array(iter([1, 2.5]))
    assert found.dtype == "float32" and found.tolist() == [1.0, 2.5]


def test_one_batch_holds_all_texts(model):
    inputs, targets, weights = model.batching.one_batch(TEXTS, ["yes", "no"], [1, 2])
    assert inputs["token_ids"].shape == (2, 5)  # [CLS] a good film [SEP]
    assert targets.numpy().tolist() == [1, 0] and weights.numpy().tolist() == [1.0, 2.0]
    ready = {"token_ids": np.ones((2, 3), "int32")}
    again, targets, weights = model.batching.one_batch(ready, ["no", "yes"], None)
    assert again is ready or again == ready
    assert targets.tolist() == [0, 1] and weights is None


def test_a_dataset_of_strings_becomes_one_of_token_ids(model):
    strings = tf.data.Dataset.from_tensor_slices(({"text": TEXTS}, [0, 1])).batch(2)
    assert "token_ids" in model.batching.numbers(strings).element_spec[0]
    numbers = tf.data.Dataset.range(3)
    assert model.batching.numbers(numbers) is numbers

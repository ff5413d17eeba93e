"""Batches of token ids from raw strings, and a call of the model on strings."""

import numpy as np
import pytest
import tensorflow as tf
from keras import tree

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


def test_texts_of_a_dataset_have_the_names_of_their_places():
    model = small_regressor(pair=True)

    def ids(texts):
        dataset = tf.data.Dataset.from_tensors((texts,))
        return next(iter(model.batching.numbers(dataset)))["token_ids"]

    expected = ids((TEXTS, OTHERS))
    np.testing.assert_array_equal(ids({"text_b": OTHERS, "text_a": TEXTS}), expected)
    named = {"premise": TEXTS, "hypothesis": OTHERS}  # in the order of the alphabet: the reverse
    message = r'"text_a" and "text_b". Received: .\'hypothesis\', \'premise\'.'
    with pytest.raises(ValueError, match=message):
        ids(named)


def numbered_model():
    """Of labels that are numbers, and are not their places: an id must not be taken for one."""
    model = small_classifier(["1", "2", "3"])
    model.compile(run_eagerly=True)
    return model, model_inputs(model.preprocess(tf.constant(TEXTS * 2))), [1, 2, 3, 1]


def test_targets_of_validation_are_encoded_once():
    """Neither Keras' own call of `evaluate` nor its split of arrays meets what users write."""
    model, ids, y = numbered_model()
    ids = {name: np.asarray(values) for name, values in ids.items()}
    given = (ids, y, None, None, None, True, None, 0)
    split = model.batching.fit_arguments(*given, validation_split=0.5)
    assert split["y"].tolist() == [0, 1, 2, 0] and split["validation_split"] == 0.5
    history = model.fit(ids, y, verbose=0, validation_data=(ids, y)).history
    assert history["val_loss"][0] == pytest.approx(model.evaluate(ids, y, verbose=0)[0], rel=1e-5)


def test_no_batch_of_a_generator_of_validation_is_lost():
    model, ids, _ = numbered_model()
    y = np.array([0, 1, 2, 0])
    batches = [({n: v[i : i + 1] for n, v in ids.items()}, y[i : i + 1]) for i in range(4)]
    first, held_out = batches[0][0], (one for one in batches)
    history = model.fit(first, y[:1] + 1, verbose=0, validation_data=held_out).history
    losses = [model.test_on_batch(x, y + 1)[0] for x, y in batches]
    assert len({round(float(one), 4) for one in losses}) > 1
    assert history["val_loss"][0] == pytest.approx(np.mean(losses), rel=1e-5)


def test_validation_data_in_a_list_is_that_in_a_tuple(model):
    found = []
    for kind in (tuple, list):
        held_out = kind((OTHERS, ["yes", "no"]))
        given = (TEXTS, ["no", "yes"], None, None, held_out, True, None, 0)
        data = model.batching.fit_arguments(*given)["validation_data"]
        found.append(list(data.as_numpy_iterator()))
    ((_, targets),) = found[0]
    assert sorted(targets) == [0, 1]
    tree.map_structure(np.testing.assert_array_equal, *found)


def test_a_budget_is_for_texts():
    model, ids, y = numbered_model()
    strings = tf.data.Dataset.from_tensors((TEXTS, ["1", "2"]))
    for x in ((ids, y), (strings,)):
        with pytest.raises(ValueError, match="`batch_tokens` must be None for token ids and data"):
            model.fit(*x, batch_tokens=99)


@pytest.mark.parametrize(
    "texts, split", [(10, 1.5), (10, 1.0), (10, -0.1), (10, "0.2"), (10, float("nan")), (1, 0.5)]
)
def test_a_split_leaves_texts_on_both_sides(model, texts, split):
    message = rf"`validation_split` must be a number in \[0, 1\).*={split!r} of {texts} texts"
    with pytest.raises(ValueError, match=message):
        model.fit(["bad"] * texts, ["no"] * texts, validation_split=split)


def test_a_call_on_what_only_looks_like_texts(model):
    message = r"`x` must be texts or pairs of texts. Received: dict of \['text'\]"
    with pytest.raises(ValueError, match=message):
        model({"text": np.array([["good", "bad"]])})

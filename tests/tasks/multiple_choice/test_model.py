"""MultipleChoice: the best of several continuations."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.optimization.adamw import AdamW
from tests import numpy_reference as reference
from tests.small_pipelines import (
    TEXTS,
    computed,
    random_texts,
    small_multiple_choice,
    small_regressor,
)

CONTEXTS = random_texts(20, seed=1, longest=12)
CHOICES = [random_texts(3, seed=i + 10, longest=12) for i in range(20)]
ANSWERS = np.random.default_rng(2).integers(0, 3, 20)


@pytest.fixture(scope="module")
def model():
    made = small_multiple_choice()
    made.compile(keras.optimizers.SGD(0.05))
    return made


@pytest.fixture(scope="module")
def predicted(model):
    return model.predict((CONTEXTS, CHOICES))


def losses(probabilities):
    return -np.log(probabilities[np.arange(len(ANSWERS)), ANSWERS])


def test_it_is_the_regressor_of_each_pair_and_a_softmax(predicted):
    # The same seed: the same encoder and the same head, which the regressor applies to each pair.
    regressor = small_regressor()
    regressor.pair = True
    pairs = ([c for c in CONTEXTS for _ in range(3)], [text for row in CHOICES for text in row])
    expected = reference.softmax(regressor.predict(pairs).reshape(20, 3))
    np.testing.assert_allclose(predicted, expected, atol=1e-5)
    assert len(np.unique(predicted.argmax(-1))) > 1


def test_forms_of_x_and_numbers_of_rows(model, predicted):
    for x in (
        {"context": CONTEXTS, "choices": CHOICES},
        (np.array(CONTEXTS), np.array(CHOICES)),
        ([c.encode() for c in CONTEXTS], [[t.encode() for t in row] for row in CHOICES]),
    ):
        np.testing.assert_allclose(model.predict(x), predicted, atol=1e-5)
    np.testing.assert_allclose(model.predict((CONTEXTS, CHOICES), 3), predicted, atol=1e-5)
    one = model.predict((CONTEXTS[:1], CHOICES[:1]))
    np.testing.assert_allclose(one, predicted[:1], atol=1e-5)
    assert model.predict(([], [])).shape == (0, 0)
    two = model.predict((CONTEXTS, [row[:2] for row in CHOICES]))
    both = predicted[:, :2] / predicted[:, :2].sum(-1, keepdims=True)
    np.testing.assert_allclose(two, both, atol=1e-4)


def test_whatever_is_sent(model):
    found = model.predict((TEXTS, [[text, "a", "\ud800"] for text in TEXTS]))
    assert found.shape == (len(TEXTS), 3) and np.isfinite(found).all()


def test_the_graph_function_agrees(model, predicted):
    ((choose, specs),) = model.signatures().values()
    assert [(s.name, s.shape.rank) for s in specs] == [("context", 1), ("choices", 2)]
    long = CONTEXTS[:19] + ["film " * 40]
    graph = tf.function(choose, input_signature=specs, autograph=False)
    found = graph(tf.constant(long), tf.constant(CHOICES))
    np.testing.assert_allclose(found["scores"][:19], predicted[:19], atol=1e-5)
    np.testing.assert_array_equal(found["choice"][:19], predicted[:19].argmax(-1))
    np.testing.assert_allclose(found["score"][:19], predicted[:19].max(-1), atol=1e-5)
    assert bool(found["truncated"][19])
    rows = model.answers((CONTEXTS, CHOICES))
    assert [row["choice"] for row in rows] == predicted.argmax(-1).tolist()
    np.testing.assert_allclose([row["scores"] for row in rows], predicted, atol=1e-5)
    np.testing.assert_allclose([row["score"] for row in rows], predicted.max(-1), atol=1e-5)


def test_evaluation_with_and_without_weights(model, predicted):
    loss, accuracy = model.evaluate((CONTEXTS, CHOICES), ANSWERS, verbose=0)
    assert loss == pytest.approx(losses(predicted).mean(), rel=1e-4)
    assert accuracy == pytest.approx((predicted.argmax(-1) == ANSWERS).mean())
    weights = np.arange(20.0)
    found = model.evaluate((CONTEXTS, CHOICES), ANSWERS, 6, 0, sample_weight=weights)[0]
    assert found == pytest.approx((losses(predicted) * weights).mean(), rel=1e-4)


@pytest.mark.slow
def test_weights_and_held_out_rows_in_training(model):
    start = model.get_weights()
    x, weights = (CONTEXTS, CHOICES), np.where(np.arange(20) < 10, 0.0, 1.0)
    other = np.where(np.arange(20) < 10, (ANSWERS + 1) % 3, ANSWERS)
    ends = []
    for y in (ANSWERS, other):
        model.set_weights(start)
        held_out = (x, ANSWERS, weights)
        history = model.fit(
            x, y, 20, sample_weight=weights, validation_data=held_out, shuffle=False, verbose=0
        ).history
        ends.append(model.get_weights())
    # What a row of weight 0 is labelled does not matter; the others do.
    for one, two in zip(*ends, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-6)
    after = (losses(model.predict(x)) * weights).mean()
    assert history["val_loss"][0] == pytest.approx(after, rel=1e-3)
    model.set_weights(start)


@pytest.mark.slow
def test_learning_saving_and_loading(tmp_path):
    model = small_multiple_choice()
    model.compile(AdamW(5e-3), run_eagerly=True)  # twelve steps take less than a graph of one
    contexts = ["the film"] * 4
    choices = [["good", "bad"], ["bad", "good"], ["very good", "bad"], ["bad", "very good"]]
    answers = [0, 1, 0, 1]
    found = model.fit((contexts, choices), answers, epochs=12, verbose=0).history["loss"]
    assert found[-1] < 0.2 < found[0]
    assert computed(model, (contexts, choices)).argmax(-1).tolist() == answers
    model.save(tmp_path / "model.keras")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = keras.models.load_model(tmp_path / "model.keras")
    assert again.get_config() == model.get_config()
    x = (CONTEXTS, CHOICES)
    np.testing.assert_allclose(computed(again, x), computed(model, x), atol=1e-5)


@pytest.mark.parametrize(
    "x, y, kwargs, message",
    [
        ((["a"], [["b", "c"]]), [2], {}, r"`y` must hold indices in \[0, 2\). Received: \[2\]"),
        ((["a"], [["b", "c"]]), [0, 1], {}, "`y` must have one entry a text. Received: 2 for 1"),
        ((["a"], [["b", "c"]]), None, {}, "`y` must be given with texts. Received: y=None"),
        (([], []), [], {}, "`x` must hold at least one row. Received: none"),
        (
            (["a", "b"], [["b", "c"], ["d"]]),
            [0, 0],
            {},
            r"all rows must have the same number of choices. Received: \[1, 2\]",
        ),
        (
            (["a"], [["b", "c"]]),
            [0],
            {"batch_tokens": 64},
            "`batch_tokens` must be None for multiple choice, whose rows hold several texts. "
            "Received: batch_tokens=64",
        ),
    ],
)
def test_wrong_arguments(model, x, y, kwargs, message):
    with pytest.raises(ValueError, match=message):
        model.fit(x, y, verbose=0, **kwargs)


def test_a_dataset_of_both_by_name(model):
    slices = tf.data.Dataset.from_tensor_slices
    columns = {"context": CONTEXTS[:4], "choices": CHOICES[:4]}
    named, plain = slices(columns).batch(2), slices((CONTEXTS[:4], CHOICES[:4])).batch(2)
    targets = slices([0, 1, 0, 1]).batch(2)
    model.compile(run_eagerly=True)
    one, other = (
        model.evaluate(tf.data.Dataset.zip((x, targets)), verbose=0) for x in (named, plain)
    )
    assert one == other

"""A model that has run computes with the adapters that its encoder has now, never with others."""

from contextlib import nullcontext

import numpy as np
import pytest
import tensorflow as tf

from tests.small_pipelines import small_classifier, small_embedder, small_question_answerer

TEXTS = ["a good film", "very bad !", "the film"]


def put_on(encoder, kind, seed):
    """Adds an adapter of random weights, and makes it active."""
    encoder.add_adapter("one", kind)
    draw = np.random.default_rng(seed)
    for variable in encoder.adapters.variables_of("one").values():
        variable.assign(draw.normal(0, 0.5, variable.shape))
    encoder.set_active_adapters("one")


def take_off(encoder):
    encoder.set_active_adapters(None)
    encoder.delete_adapter("one")


@pytest.mark.parametrize("scope", [nullcontext, tf.distribute.MirroredStrategy(["CPU:0"]).scope])
def test_predict_and_the_layers_say_the_same_after_each_change(scope):
    with scope():
        model = small_classifier()
    seen = [model.predict(TEXTS)]

    def agrees():
        """What the layers compute is what `predict` says; returns how far it is from before."""
        found = model.predict(TEXTS)
        logits = np.asarray(model(TEXTS), "float64")
        by_layers = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
        np.testing.assert_allclose(found, by_layers, atol=1e-5)
        seen.append(found)
        return np.abs(found - seen[-2]).max()

    put_on(model.encoder, "lora", 3)
    assert agrees() > 0.01
    model.encoder.merge_adapter("one")
    assert agrees() < 1e-5
    if scope is not nullcontext:
        return  # the others are changes of the same kinds
    put_on(model.encoder, "pfeiffer", 4)
    assert agrees() > 0.01
    take_off(model.encoder)
    assert agrees() > 0.01
    put_on(model.encoder, "pfeiffer", 5)  # the same name with other weights
    assert agrees() > 0.01


@pytest.mark.parametrize("make", [small_question_answerer, small_embedder])
def test_graphs_of_windows_are_of_the_adapters_of_now(make):
    model = make()

    def scores():
        """A number for each text, from what the model finds in it."""
        if make is small_embedder:
            return model.encode(["film " * 60])  # longer than a window
        return np.array([row["score"] for row in model.predict((["film"] * len(TEXTS), TEXTS))])

    plain = scores()
    found = []
    for seed in (1, 2):
        put_on(model.encoder, "pfeiffer", seed)
        found.append(scores())
        take_off(model.encoder)
    assert not np.array_equal(found[0], found[1])
    assert np.array_equal(scores(), plain)


def test_training_that_goes_on_with_other_weights_must_be_compiled_again():
    model = small_classifier()
    model.encoder.add_adapter("one")
    model.encoder.train_adapter("one")
    model.compile(run_eagerly=True)
    model.fit(TEXTS, ["no", "yes", "no"], verbose=0)
    model.encoder.train_encoder()
    with pytest.raises(ValueError, match="(?s)Unknown variable.* new optimizer"):
        model.fit(TEXTS, ["no", "yes", "no"], verbose=0)
    model.compile(run_eagerly=True)
    model.fit(TEXTS, ["no", "yes", "no"], verbose=0)

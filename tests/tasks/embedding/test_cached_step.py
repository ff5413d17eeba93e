"""Steps in two passes have the gradients of steps in one."""

import functools
import random

import numpy as np
import pytest
import tensorflow as tf

from kbert.optimization.adamw import AdamW
from kbert.optimization.embedding_losses import MultipleNegatives
from kbert.tasks.embedding.model import TextEmbedder
from tests.small_pipelines import TOKENIZER, random_texts, small_embedder, small_encoder
from tests.training.eager_steps import eager_steps

PAIRS = (random_texts(7, 1), random_texts(7, 2), random_texts(7, 3))


@functools.cache
def stepped(chunk_rows, make=small_embedder):
    """The weights and the loss after two steps of descent, whose second needs the first."""
    model = make()
    model.compile("sgd", MultipleNegatives(chunk_rows=chunk_rows))
    with eager_steps():
        losses = [float(model.train_on_batch(PAIRS)) for _ in range(2)]
    return losses, [np.asarray(v) for v in model.trainable_variables]


@pytest.mark.parametrize("chunk_rows", [2, 7, 100])
def test_chunks_do_not_matter(chunk_rows):
    losses, weights = stepped(None)
    found, cached = stepped(chunk_rows)
    np.testing.assert_allclose(found, losses, rtol=1e-4)
    for one, other in zip(cached, weights, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


def test_dropout_is_the_same_in_both_passes():
    def with_dropout():
        random.seed(7)  # which Keras takes its seeds from
        return TextEmbedder(small_encoder(dropout=0.5, attention_dropout=0.3), TOKENIZER, 24)

    # One chunk of all examples draws what one step draws.
    losses, weights = stepped(None, with_dropout)
    found, cached = stepped(7, with_dropout)
    np.testing.assert_allclose(found, losses, rtol=1e-4)
    for one, other in zip(cached, weights, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.filterwarnings("ignore:Gradients do not exist")
def test_regularizers_count_and_weights_without_gradients_stay():
    """Of a fusion the regularizer; of an adapter that is not active not even the decay."""

    def trained(chunk_rows):
        model = small_embedder()
        for name in ("one", "other", "third"):
            model.encoder.add_adapter(name, "pfeiffer")
        model.encoder.add_adapter_fusion(["one", "other"], 100.0)
        model.encoder.set_active_adapters(["one", "other"])
        for variable in model.trainable_variables:
            variable.assign(variable * 0.5 + 0.1)
        model.compile(AdamW(1e-3, weight_decay=0.5), MultipleNegatives(chunk_rows=chunk_rows))
        with eager_steps():
            loss = float(model.train_on_batch(PAIRS))
        return loss, {v.path: np.asarray(v) for v in model.trainable_variables}

    loss, weights = trained(None)
    found, cached = trained(2)
    assert found == pytest.approx(loss, rel=1e-5)
    assert any("third" in path for path in weights)
    for path, one in weights.items():
        np.testing.assert_allclose(cached[path], one, atol=2e-5, err_msg=path)


def test_in_float64():
    make = functools.partial(small_embedder, dtype="float64")
    losses, weights = stepped(None, make)
    found, cached = stepped(2, make)
    np.testing.assert_allclose(found, losses, rtol=1e-9)
    for one, other in zip(cached, weights, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


@pytest.mark.slow
def test_in_the_graph_of_fit():
    model = small_embedder()
    model.compile(AdamW(5e-3), MultipleNegatives(chunk_rows=3))
    history = model.fit(PAIRS[:2], epochs=5, batch_size=7, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]


def test_replicas_are_refused():
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    with strategy.scope():
        model = small_embedder()
        model.compile(loss=MultipleNegatives(chunk_rows=3))
    with pytest.raises(ValueError, match="`chunk_rows` must be None where replicas share a batch"):
        model.fit(PAIRS[:2], verbose=0)

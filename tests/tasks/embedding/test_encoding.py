"""Vectors of texts: those of `predict`, and of long ones by hand from windows."""

import numpy as np
import pytest

from tests.small_pipelines import TEXTS, small_embedder

ROOM = 22  # of the 24 tokens of a window
LONG = ["a good film " * 20, "very bad", "the film " * 11, ""]


@pytest.mark.parametrize("batch_size", [None, 4])
def test_they_are_those_of_predict(batch_size):
    model = small_embedder(dense=3)
    np.testing.assert_allclose(model.encode(TEXTS, batch_size), model.predict(TEXTS), atol=1e-6)


def test_weights_that_changed_are_read():
    model = small_embedder()
    before = model.encode(["a film"])
    table = model.encoder.embeddings.token_embedding.embeddings
    table.assign(table * 0.5)
    assert np.abs(model.encode(["a film"]) - before).max() > 1e-3


def expected(model, text):
    """Each window's states, taken together over all of its tokens."""
    words = text.split()
    windows = [words[i : i + ROOM] for i in range(0, max(1, len(words)), ROOM)]
    states = []
    for window in windows:
        inputs = model.batching.call_inputs([" ".join(window)])
        states.append(np.asarray(model.encoder(inputs)["sequence_output"][0]))
    if model.pooling == "mean":
        pooled = np.concatenate(states).mean(axis=0)
    elif model.pooling == "max":
        pooled = np.concatenate(states).max(axis=0)
    else:
        pooled = np.average([s[0] for s in states], axis=0, weights=[len(s) for s in states])
    return pooled / np.linalg.norm(pooled)


@pytest.mark.parametrize("pooling", ["mean", "max", "cls"])
def test_every_token_counts_once(pooling):
    model = small_embedder(pooling=pooling)
    found = model.encode(LONG, long="windows")
    np.testing.assert_allclose(found, [expected(model, text) for text in LONG], atol=1e-5)


def test_short_texts_are_as_if_cut():
    model = small_embedder(dense=3)
    fits = ~model.pack(TEXTS).truncated
    cut, whole = model.encode(TEXTS), model.encode(TEXTS, batch_size=4, long="windows")
    np.testing.assert_allclose(whole[fits], cut[fits], atol=1e-5)
    assert (np.abs(whole[~fits] - cut[~fits]).max(axis=1) > 1e-4).all()
    assert model.encode([], long="windows").shape == (0, 3)

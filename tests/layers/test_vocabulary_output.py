"""Logits by weights of their own or by those of the embeddings."""

import numpy as np

from kbert.layers.embeddings import TokenEmbedding
from kbert.layers.vocabulary_output import VocabularyOutput
from tests.check_layer import check_layer

INPUTS = np.random.default_rng(1).normal(size=(2, 3, 4)).astype("float32")


def test_the_ritual():
    variables = {"kernel": (4, 6), "bias": (6,)}
    given = {"vocabulary_size": 6, "tied": False}
    check_layer(
        VocabularyOutput, given, INPUTS, (2, 3, 6), variables, output_dtype="float32"
    )


def test_tied():
    layer = VocabularyOutput(5, tied=True)
    layer.build((None, 4))
    layer.bias.assign(np.arange(5.0))
    embedding = TokenEmbedding(5, 4)
    embedding.build()
    table = np.asarray(embedding.embeddings)
    assert [weight.name for weight in layer.weights] == ["bias"]
    found = layer(INPUTS, embedding=embedding)
    np.testing.assert_allclose(found, INPUTS @ table.T + np.arange(5), atol=1e-5)

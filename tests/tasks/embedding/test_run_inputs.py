"""Pairs of texts in a run."""

from types import SimpleNamespace

import numpy as np
import pytest

from kbert.data.classification.text_tuples import TupleExamples
from kbert.metrics.embeddings import embedding_metrics
from kbert.tasks.embedding.task import TASK
from tests.small_pipelines import random_texts, small_embedder

CONFIG = SimpleNamespace(strategy="one", batch_size=4, batch_tokens=None, seed=3, epochs=2)


def made_examples(scores=None):
    a, b = random_texts(10, 1), random_texts(10, 2)
    return TupleExamples(a, b, None, scores, None, "t.tsv", list(range(2, 12)))


@pytest.fixture(scope="module")
def model():
    return small_embedder()


def test_batches(model):
    prepared = TASK.prepare(model, made_examples())
    tokens = prepared.input
    assert tokens.steps(CONFIG) == [3, 3] and len(tokens.lengths) == len(tokens.truncated) == 10
    batches = list(tokens.dataset(model, CONFIG, prepared.right))
    assert [len(numbers) for _, numbers in batches] == [4, 4, 2]
    masks = [inputs["padding_mask"].numpy() for inputs, _ in batches]
    assert sum(mask.sum() for mask in masks) == tokens.lengths.sum()
    share = 1 - sum(mask.sum() for mask in masks) / sum(mask.size for mask in masks)
    assert tokens.padding_share(CONFIG) == pytest.approx(share)
    resumed = tokens.dataset(model, CONFIG, prepared.right, 0, 2)
    np.testing.assert_array_equal(next(iter(resumed))[1], batches[2][1])


@pytest.mark.parametrize("scores", [None, np.linspace(0, 5, 10).tolist()])
def test_metrics(model, scores):
    examples = made_examples(scores)
    prepared = TASK.prepare(model, examples)
    vectors = model.predict(examples.texts)
    found = prepared.validating(None).measured(model)
    assert found == pytest.approx(embedding_metrics(vectors, scores), abs=1e-6)
    assert prepared.right.shape == ((10, 2) if scores is None else (10,))

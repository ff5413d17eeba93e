"""Metrics of vectors by hand."""

import numpy as np
import pytest

from kbert.metrics.embeddings import embedding_metrics
from kbert.metrics.glue import NotFiniteError


def at(*degrees):
    """Vectors of several lengths at these angles."""
    angles = np.deg2rad(np.array(degrees, "float64"))
    sizes = 1.0 + np.arange(angles.size).reshape(angles.shape)
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1) * sizes[..., None]


def test_correlation_with_scores():
    # Cosines 1, 1/2 and 0; the scores have the same order and lie on a line with them.
    vectors = at([0, 0], [0, 60], [0, 90])
    found = embedding_metrics(vectors, [4.0, 3.0, 2.0])
    assert found == pytest.approx({"spearman": 1.0, "pearson": 1.0})
    # Ranks 3, 2, 1 and 1, 3, 2: 1 - 6 * (4 + 1 + 1) / (3 * 8) = -1/2.
    assert embedding_metrics(vectors, [0.0, 3.0, 2.0])["spearman"] == pytest.approx(-0.5)


def test_finding_ones_own():
    # The anchor at 0 has its own at 10; that at 90 its own at 60, behind 100; that at 95 its own.
    found = embedding_metrics(at([0, 10], [90, 60], [95, 100]))
    assert found == pytest.approx({"accuracy": 2 / 3, "mrr": (1 + 1 / 2 + 1) / 3})


def test_equal_texts_share_the_better_rank():
    assert embedding_metrics(at([0, 10], [0, 10]))["accuracy"] == 1.0


def test_triplets():
    found = embedding_metrics(at([0, 10, 20], [90, 120, 100], [45, 45, 46]))
    assert found["triplet_accuracy"] == pytest.approx(2 / 3)


def test_blocks_do_not_matter(monkeypatch):
    vectors = np.random.default_rng(0).normal(size=(37, 2, 5))
    whole = embedding_metrics(vectors)
    monkeypatch.setattr("kbert.metrics.embeddings._ROWS", 5)
    assert embedding_metrics(vectors) == whole


def test_errors():
    with pytest.raises(ValueError, match=r"`vectors` must have the shape \(n, K, D\).*\(3, 2\)"):
        embedding_metrics(np.zeros((3, 2)))
    with pytest.raises(NotFiniteError, match="`vectors` must be finite numbers. Received: NaN"):
        embedding_metrics(np.full((3, 2, 2), np.nan))

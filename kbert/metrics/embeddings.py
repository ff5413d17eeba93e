"""Metrics of sentence embeddings: correlation with scores, and whether texts find their own."""

from typing import Any

import numpy as np

from kbert.metrics.glue import NotFiniteError, regression_metrics

# Similarities in memory at a time: rows of this many anchors.
_ROWS = 1024
_TINY = 1e-12


def embedding_metrics(vectors: Any, scores: Any = None) -> dict[str, float]:
    """Returns the metrics of examples of K texts each, given their vectors.

    With scores: "spearman" and "pearson", the correlation of the cosines of each example's first
    two vectors with the scores (STS). Without: "accuracy", the share of anchors to which their own
    second text is the most similar of all second texts, and "mrr", the mean of 1 / its rank there;
    equal vectors share the better rank. Where there are third texts also "triplet_accuracy", the
    share of anchors that are nearer to their second text than to every further one.

    Args:
        vectors: float (n, K, D), K at least 2.
        scores: float (n,), or None.

    Raises:
        ValueError: the shapes do not fit; a `NotFiniteError` if a vector is not finite.
    """
    array = np.asarray(vectors, "float32")
    if array.ndim != 3 or array.shape[1] < 2 or not len(array):
        raise ValueError(
            "`vectors` must have the shape (n, K, D), with two texts an example or more. "
            f"Received: shape {array.shape}"
        )
    if not np.isfinite(array).all():
        raise NotFiniteError("`vectors` must be finite numbers. Received: NaN or infinity")
    array = array / np.maximum(np.linalg.norm(array, axis=-1, keepdims=True), _TINY)
    own = np.einsum("nd,nkd->nk", array[:, 0], array[:, 1:])
    if scores is not None:
        found = regression_metrics(scores, own[:, 0])
        return {name: found[name] for name in ("spearman", "pearson")}
    ranks = _ranks(array[:, 0], array[:, 1])
    metrics = {"accuracy": float(np.mean(ranks == 1)), "mrr": float(np.mean(1 / ranks))}
    if array.shape[1] > 2:
        metrics["triplet_accuracy"] = float(np.mean(own[:, :1] > own[:, 1:].max(1, keepdims=True)))
    return metrics


def _ranks(anchors: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Returns the rank (n,), from 1, of each anchor's own second text among all of them."""
    # Products of the same two vectors differ in their last bits from block to block.
    slack = 1e-6
    ranks = np.empty(len(anchors), "int64")
    for start in range(0, len(anchors), _ROWS):
        some = slice(start, start + _ROWS)
        found = anchors[some] @ seconds.T
        own = np.einsum("nd,nd->n", anchors[some], seconds[some])
        ranks[some] = 1 + (found > own[:, None] + slack).sum(axis=1)
    return ranks

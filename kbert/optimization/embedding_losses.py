"""Losses over the vectors of texts that belong together: contrastive, by scores, by triplets.

`y_pred` are the vectors (B, K, D) of B examples of K texts each: an anchor, a text that fits it,
and, where there are more, texts that do not (hard negatives).
"""

from typing import Any

import keras
from keras import ops

from kbert.optimization.losses import widened

SIMILARITIES = ("cosine", "dot")
# Stands for the similarity of a pair that does not count: its probability is 0.
_NOT_COUNTED = -1e9
_TINY = 1e-12


def unit_length(vectors: Any) -> Any:
    """Divides vectors (..., D) by their lengths; of a shorter one than 1e-12 by that."""
    # The gradient of a square root at 0 is infinite: it is kept away from there.
    squares = ops.sum(ops.square(vectors), axis=-1, keepdims=True)
    return vectors / ops.sqrt(ops.maximum(squares, _TINY**2))


def cosines(a: Any, b: Any) -> Any:
    """Returns the cosine of the angle between vectors a and b, (..., D) each, as (...)."""
    return ops.sum(unit_length(a) * unit_length(b), axis=-1)


@keras.saving.register_keras_serializable("kbert")
class MultipleNegatives(keras.losses.Loss):
    """Cross-entropy of each anchor's own text among all texts of the batch.

    For anchor i and the candidates c, which are the second texts of all examples and all further
    texts, it is -log softmax(scale * similarity(anchor_i, c))_i. More examples a batch are more
    negatives, and a harder task.

    Source: Henderson et al. 2017, section 4.4; with cosines and a scale of 20, and further texts as
    hard negatives, it is `MultipleNegativesRankingLoss` of sentence-transformers.

    Args:
        scale: the factor of the similarities, 1 / temperature.
        similarity: "cosine" or "dot".
        ignore_duplicates: whether candidates that are known to fit count as no negatives: those
            with the text of the right one, and the right ones of the same anchor. It needs targets
            that number the texts.
        chunk_rows: examples whose vectors are computed at a time, so that a batch may be larger
            than memory allows (Gao et al. 2021, GradCache); None for all at once. The gradients are
            the same; a step takes another forward pass. Only `kbert.TextEmbedder` does it.

    Raises:
        ValueError: an argument is out of its range.
    """

    def __init__(
        self,
        scale: float = 20.0,
        similarity: str = "cosine",
        ignore_duplicates: bool = True,
        chunk_rows: int | None = None,
        name: str = "multiple_negatives",
        reduction: str = "sum_over_batch_size",
        **kwargs: Any,
    ) -> None:
        if scale <= 0:
            raise ValueError(f"`scale` must be above 0. Received: scale={scale}")
        if similarity not in SIMILARITIES:
            raise ValueError(
                f"`similarity` must be one of {list(SIMILARITIES)}. "
                f"Received: similarity={similarity!r}"
            )
        if chunk_rows is not None and chunk_rows < 1:
            raise ValueError(f"`chunk_rows` must be at least 1. Received: chunk_rows={chunk_rows}")
        super().__init__(name=name, reduction=reduction, **kwargs)
        self.scale, self.similarity = scale, similarity
        self.ignore_duplicates, self.chunk_rows = ignore_duplicates, chunk_rows

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the loss (B,) of each example.

        Args:
            y_true: numbers (B, K) of the texts, equal where the texts are, as in `y_pred`; of any
                other shape, each text counts as another one.
            y_pred: vectors (B, K, D).
        """
        vectors = widened(y_pred)
        if self.similarity == "cosine":
            vectors = unit_length(vectors)
        candidates = _candidates(vectors)
        scores = self.scale * ops.matmul(vectors[:, 0], ops.transpose(candidates))
        own = self.scale * ops.sum(vectors[:, 0] * vectors[:, 1], axis=-1)
        if self.ignore_duplicates and _numbers_texts(y_true, y_pred):
            scores = ops.where(_known_to_fit(y_true), _NOT_COUNTED, scores)
        return ops.logsumexp(scores, axis=-1) - own

    def get_config(self) -> dict[str, Any]:
        own = ("scale", "similarity", "ignore_duplicates", "chunk_rows")
        return {**super().get_config(), **{name: getattr(self, name) for name in own}}


def _candidates(columns: Any) -> Any:
    """Returns (B, K, ...) without the anchors as (B (K - 1), ...): all second ones, then others."""
    return ops.concatenate([columns[:, k] for k in range(1, columns.shape[1])], axis=0)


def _numbers_texts(y_true: Any, y_pred: Any) -> bool:
    return len(y_true.shape) == 2 and y_true.shape[1] == y_pred.shape[1]


def _known_to_fit(numbers: Any) -> Any:
    """Returns which candidates fit an anchor without being its own, bool (B, B (K - 1))."""
    count, rows = numbers.shape[1], ops.shape(numbers)[0]
    same_text = ops.equal(numbers[:, 1, None], _candidates(numbers)[None])
    own = ops.equal(ops.arange(rows)[:, None], ops.arange(rows * (count - 1))[None])
    same_anchor = ops.equal(numbers[:, 0, None], numbers[None, :, 0])  # (B, B)
    # The second texts of all examples with the same anchor fit it, wherever they occur.
    fits = ops.matmul(ops.cast(same_anchor, "float32"), ops.cast(same_text, "float32")) > 0
    return ops.logical_and(fits, ops.logical_not(own))


@keras.saving.register_keras_serializable("kbert")
class CosineRegression(keras.losses.Loss):
    """The squared difference between the cosine of two vectors and their score.

    Scores from `lowest` to `highest` become 0 to 1, so that those of STS (0 to 5) are cosines.

    Source: Reimers and Gurevych 2019 (arXiv:1908.10084), section 3, regression objective.

    Raises:
        ValueError: `lowest` is not below `highest`.
    """

    def __init__(
        self,
        lowest: float = 0.0,
        highest: float = 1.0,
        name: str = "cosine_regression",
        reduction: str = "sum_over_batch_size",
        **kwargs: Any,
    ) -> None:
        if not lowest < highest:
            raise ValueError(
                f"`lowest` must be below `highest`. Received: lowest={lowest}, highest={highest}"
            )
        super().__init__(name=name, reduction=reduction, **kwargs)
        self.lowest, self.highest = float(lowest), float(highest)

    def check_scores(self, lowest: float, highest: float) -> None:
        """Raises a ValueError if scores, of which these are the extremes, would be no cosines."""
        width = self.highest - self.lowest
        if lowest < self.lowest - width or highest > self.highest:
            raise ValueError(
                f"`y` must hold scores in [{self.lowest - width:g}, {self.highest:g}], which "
                "become cosines; for others compile with loss=CosineRegression(lowest, highest). "
                f"Received: scores from {lowest:g} to {highest:g}"
            )

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the loss (B,) for scores (B,) or (B, 1) and vectors (B, 2, D)."""
        vectors = widened(y_pred)
        scores = ops.cast(ops.reshape(y_true, (-1,)), vectors.dtype)
        wanted = (scores - self.lowest) / (self.highest - self.lowest)
        return ops.square(cosines(vectors[:, 0], vectors[:, 1]) - wanted)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "lowest": self.lowest, "highest": self.highest}


@keras.saving.register_keras_serializable("kbert")
class TripletMargin(keras.losses.Loss):
    """max(0, |anchor - right| - |anchor - wrong| + margin), with Euclidean distances.

    Of several wrong texts the mean over them.

    Source: Reimers and Gurevych 2019 (arXiv:1908.10084), section 3, triplet objective.

    Raises:
        ValueError: `margin` is not above 0.
    """

    def __init__(
        self,
        margin: float = 1.0,
        name: str = "triplet_margin",
        reduction: str = "sum_over_batch_size",
        **kwargs: Any,
    ) -> None:
        if margin <= 0:
            raise ValueError(f"`margin` must be above 0. Received: margin={margin}")
        super().__init__(name=name, reduction=reduction, **kwargs)
        self.margin = margin

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the loss (B,) of vectors (B, K, D), K at least 3; `y_true` is not read.

        Raises:
            ValueError: there are no third texts.
        """
        vectors = widened(y_pred)
        if vectors.shape[1] < 3:
            raise ValueError(
                "`y_pred` must have three vectors an example, of anchor, right and wrong text. "
                f"Received: {vectors.shape[1]}"
            )
        away = vectors[:, 1:] - vectors[:, :1]
        # As above: no square root of 0.
        distances = ops.sqrt(ops.maximum(ops.sum(ops.square(away), axis=-1), _TINY**2))
        missing = ops.relu(distances[:, :1] - distances[:, 1:] + self.margin)
        return ops.mean(missing, axis=-1)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "margin": self.margin}


@keras.saving.register_keras_serializable("kbert")
class ByTargets(keras.losses.Loss):
    """`CosineRegression` where the targets are scores, and otherwise `MultipleNegatives`."""

    def __init__(
        self, name: str = "by_targets", reduction: str = "sum_over_batch_size", **kwargs: Any
    ) -> None:
        super().__init__(name=name, reduction=reduction, **kwargs)
        self._by_scores, self._by_texts = CosineRegression(), MultipleNegatives()
        self.check_scores = self._by_scores.check_scores

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the loss (B,) for scores (B,), or numbers of texts (B, K), and vectors."""
        chosen = self._by_texts if _numbers_texts(y_true, y_pred) else self._by_scores
        return chosen.call(y_true, y_pred)

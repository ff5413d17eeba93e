"""Losses over the positions of sequences: spans, and labels of tokens; means over an epoch."""

from typing import Any

import keras
from keras import ops

from kbert.optimization.losses import over_replicas, widened

# In targets: no such position, or a token that does not count.
ABSENT = -1


class StreamingMean(keras.metrics.Metric):
    """The mean of one number per token over the tokens that count in all batches so far.

    An epoch has more tokens than float32 can count one by one (2^24), so each sum is kept in two
    variables: what the first rounds off is in the second (Kahan 1965).
    """

    def __init__(self, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        names = ("total", "total_rest", "counted", "counted_rest")
        self._sums = [self.add_variable((), "zeros", dtype="float32", name=name) for name in names]

    def add(self, values: Any, counts: Any, sample_weight: Any = None) -> None:
        """Adds a batch: values (B, T), counts (B, T), 1 where a token counts, and weights (B,)."""
        values, counts = ops.cast(values, "float32"), ops.cast(counts, "float32")
        if sample_weight is not None:
            counts = counts * ops.reshape(ops.cast(sample_weight, "float32"), (-1, 1))
        total, total_rest, counted, counted_rest = self._sums
        _add_to_pair(total, total_rest, ops.sum(values * counts))
        _add_to_pair(counted, counted_rest, ops.sum(counts))

    def result(self) -> Any:
        """Returns the mean, 0 before any token counted."""
        total, total_rest, counted, counted_rest = self._sums
        return (total + total_rest) / ops.maximum(counted + counted_rest, 1e-9)


def _add_to_pair(sum: Any, rest: Any, added: Any) -> None:
    added = added + rest
    new = sum + added
    rest.assign(added - (new - sum))
    sum.assign(new)


@keras.saving.register_keras_serializable("kbert")
class SpanCrossEntropy(keras.losses.Loss):
    """-log p_start(s) - log p_end(e), each a softmax over the positions of its sequence.

    Source: Devlin et al. 2019, section 4.2 (there the mean of the two). Where several positions are
    given, any may be the right one: the loss is -log of the sum of their probabilities (the
    marginal likelihood of Clark and Gardner 2018).
    """

    def __init__(
        self,
        name: str = "span_cross_entropy",
        reduction: str = "sum_over_batch_size",
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, reduction=reduction, **kwargs)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the loss (B,) of each sequence.

        Args:
            y_true: int (B, 2), start and end, or (B, K, 2), up to K of each; -1 is none.
            y_pred: logits (B, T, 2).
        """
        log_probabilities = ops.log_softmax(widened(y_pred), axis=1)
        # Two spans may share a start: a position counts once, however often it is given.
        places = ops.arange(ops.shape(y_pred)[1], dtype="int32")[:, None]  # (T, 1)
        given = ops.any(ops.equal(_positions(y_true)[:, :, None], places), axis=1)  # (B, T, 2)
        likelihood = ops.logsumexp(ops.where(given, log_probabilities, -1e9), axis=1)
        return -ops.sum(likelihood, axis=-1)  # of (B, 2)


@keras.saving.register_keras_serializable("kbert")
def span_accuracy(y_true: Any, y_pred: Any) -> Any:
    """Returns float32 (B,): 1 where the likeliest start and end are among the given ones, else 0.

    Arguments have the shapes of `SpanCrossEntropy.call`.
    """
    best = ops.cast(ops.argmax(y_pred, axis=1), "int32")[:, None, :]  # (B, 1, 2)
    right = ops.any(ops.equal(best, _positions(y_true)), axis=1)
    return ops.cast(ops.all(right, axis=-1), "float32")


@keras.saving.register_keras_serializable("kbert")
class TokenCrossEntropy(keras.losses.Loss):
    """-sum_i sum_j t_ij log p_ij over the tokens i that count and the classes j.

    Args:
        per: "sequence": the mean of these sums over the batch; "token": their sum over the batch,
            divided by the number of tokens that count.
    """

    def __init__(
        self,
        per: str = "token",
        name: str = "token_cross_entropy",
        reduction: str = "sum_over_batch_size",
        **kwargs: Any,
    ) -> None:
        if per not in ("sequence", "token"):
            raise ValueError(f'`per` must be "sequence" or "token". Received: per={per!r}')
        super().__init__(name=name, reduction=reduction, **kwargs)
        self.per = per

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the loss (B,) of each sequence; its mean over the batch is that of the batch.

        Args:
            y_true: class ids (B, T), -1 where a token does not count, or distributions (B, T, C),
                all 0 where a token does not count.
            y_pred: logits (B, T, C).
        """
        sums, counted = self.sums(y_true, y_pred)
        if self.per == "sequence":
            return sums
        # Of the whole batch, which several replicas may share.
        rows, counted = over_replicas(ops.cast(ops.shape(sums)[0], sums.dtype), counted)
        return sums * (rows / ops.maximum(counted, 1.0))

    def sums(self, y_true: Any, y_pred: Any) -> tuple[Any, Any]:
        """Returns the summed loss (B,) of each sequence, and how many tokens of the batch count."""
        log_probabilities = ops.log_softmax(widened(y_pred), axis=-1)
        distribution = ops.cast(token_distribution(y_true, y_pred), log_probabilities.dtype)
        counted = ops.sum(ops.cast(counting_tokens(y_true), distribution.dtype))
        return -ops.sum(distribution * log_probabilities, axis=(1, 2)), counted

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "per": self.per}


@keras.saving.register_keras_serializable("kbert")
class TokenAccuracy(StreamingMean):
    """The fraction of the tokens that count whose likeliest class is the true one; 0 at first."""

    def __init__(self, name: str = "accuracy", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Adds a batch of targets and logits as in `TokenCrossEntropy.call`, and weights (B,)."""
        truth = ops.argmax(y_true, axis=-1) if len(y_true.shape) == 3 else y_true
        best = ops.cast(ops.argmax(y_pred, axis=-1), "int32")
        same = ops.equal(ops.cast(truth, "int32"), best)
        self.add(same, counting_tokens(y_true), sample_weight)


def counting_tokens(y_true: Any) -> Any:
    """Returns which tokens count, bool (B, T), of targets as those of `TokenCrossEntropy.call`."""
    if len(y_true.shape) == 3:
        return ops.any(y_true > 0, axis=-1)
    return ops.greater_equal(y_true, 0)


def token_distribution(y_true: Any, y_pred: Any) -> Any:
    """Returns such targets as distributions, float32 (B, T, C), all 0 where a token does not count.

    Of `y_pred` (B, T, C) only C is read.
    """
    if len(y_true.shape) == 3:
        return ops.cast(y_true, "float32")
    classes = ops.arange(y_pred.shape[-1], dtype="int32")
    return ops.cast(ops.equal(ops.cast(y_true, "int32")[:, :, None], classes), "float32")


def _positions(y_true: Any) -> Any:
    """Returns positions as int32 (B, K, 2)."""
    positions = ops.cast(y_true, "int32")
    return positions[:, None, :] if len(positions.shape) == 2 else positions

"""Cross-entropy over large vocabularies: of translation, smoothed, and of BERT's pretraining."""

from typing import Any

import keras
import numpy as np
from keras import ops

from kbert.gradients import own_gradient
from kbert.optimization.losses import wide_dtype
from kbert.optimization.sequence_losses import StreamingMean, TokenCrossEntropy

# exp of more than this would overflow float32.
_MOST = 88.0


@keras.saving.register_keras_serializable("kbert")
class LabelSmoothedCrossEntropy(TokenCrossEntropy):
    """-sum_i sum_j q_ij log p_ij over the tokens i that count and the vocabulary j.

    q_ij = (1 - smoothing) [j is the target] + smoothing / V: the smoothing is shared by all V
    entries, the target included. (fairseq shares it differently: see its `label_smoothed_nll_loss`.
    Its rate e is the rate e V / (V - 1) here.)

    Source: Szegedy et al. 2016, section 7; Vaswani et al. 2017, section 5.4.

    Args:
        smoothing: probability mass that is spread over the vocabulary, in [0, 1).
        per: "token": the sum over the batch, divided by its number of tokens that count;
            "sequence": the mean of the sums of its sequences.
    """

    def __init__(
        self,
        smoothing: float = 0.1,
        per: str = "token",
        name: str = "label_smoothed_cross_entropy",
        reduction: str = "sum_over_batch_size",
        **kwargs: Any,
    ) -> None:
        if not 0.0 <= smoothing < 1.0:
            raise ValueError(f"`smoothing` must be in [0, 1). Received: smoothing={smoothing}")
        super().__init__(per, name=name, reduction=reduction, **kwargs)
        self.smoothing = smoothing

    @property
    def dtype(self) -> None:
        """None, so that Keras does not cast to float32, a copy of all low-precision logits."""
        return None

    def sums(self, y_true: Any, y_pred: Any) -> tuple[Any, Any]:
        losses = token_cross_entropy(y_true, y_pred, self.smoothing)
        counts = ops.cast(ops.greater_equal(y_true, 0), losses.dtype)
        return ops.sum(losses, axis=-1), ops.sum(counts)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "smoothing": self.smoothing}


class NextTokenMean(StreamingMean):
    """The mean of a number, `of_tokens` of a subclass, per token that counts."""

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Adds a batch: int (B, T), -1 where a token does not count, and logits (B, T, V)."""
        numbers = self.of_tokens(y_true, y_pred)
        self.add(numbers, ops.greater_equal(y_true, 0), sample_weight)

    def of_tokens(self, y_true: Any, y_pred: Any) -> Any:
        """Returns a number (B, T) of each token; any value where it does not count."""
        raise NotImplementedError(f"{type(self).__name__} must say what it measures")


@keras.saving.register_keras_serializable("kbert")
class Perplexity(NextTokenMean):
    """exp of the mean cross-entropy, not smoothed, over the tokens that count.

    It is at most e^88, which float32 still holds, and 1 before any token counted.
    """

    def __init__(self, name: str = "perplexity", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)

    def of_tokens(self, y_true: Any, y_pred: Any) -> Any:
        return token_cross_entropy(y_true, y_pred)

    def result(self) -> Any:
        """Returns exp of the mean."""
        return perplexity(super().result())


@keras.saving.register_keras_serializable("kbert")
class NextTokenAccuracy(NextTokenMean):
    """The fraction of the tokens that count with no likelier one in the vocabulary.

    `TokenAccuracy` without the argmax: over a large vocabulary that takes as long as a tenth of a
    training step, and the loss needs the largest logit itself anyway.
    """

    def __init__(self, name: str = "accuracy", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)

    def of_tokens(self, y_true: Any, y_pred: Any) -> Any:
        return is_likeliest(y_true, y_pred)


def is_likeliest(y_true: Any, y_pred: Any) -> Any:
    """Returns whether no token is likelier than the true one, bool (B, T); any value at -1."""
    targets = ops.maximum(ops.cast(y_true, "int32"), 0)[..., None]
    largest = ops.max(y_pred, axis=-1, initial=-np.inf)
    return ops.take_along_axis(y_pred, targets, axis=-1)[..., 0] >= largest


def perplexity(cross_entropy: Any) -> Any:
    """Returns exp of a mean cross-entropy, at most e^88, which float32 still holds."""
    return ops.exp(ops.minimum(cross_entropy, _MOST))


def token_cross_entropy(y_true: Any, y_pred: Any, smoothing: float = 0.0) -> Any:
    """-sum_j q_ij log p_ij of each token i, (B, T), the terms of `LabelSmoothedCrossEntropy`.

    It is 0 where a token does not count, float64 for logits in float64 and otherwise float32, in
    which the softmax is computed whatever their dtype.
    """
    y_true, y_pred = ops.cast(y_true, "int32"), ops.convert_to_tensor(y_pred)
    counts = ops.greater_equal(y_true, 0)
    vocabulary_size = ops.shape(y_pred)[-1]
    logits = ops.reshape(y_pred, (-1, vocabulary_size))  # (B T, V)
    targets = ops.reshape(ops.where(counts, y_true, 0), (-1, 1))  # (B T, 1)
    losses = ops.reshape(_row_losses(logits, targets, smoothing), ops.shape(counts))
    return ops.where(counts, losses, 0.0)


def _row_losses(logits: Any, targets: Any, smoothing: float) -> Any:
    """Returns the loss of each row of logits (N, V) with targets (N, 1), as (N,).

    With q of sum 1 the loss is logsumexp z - (1 - smoothing) z_target - smoothing mean z, and its
    gradient p - q: neither needs q as an array. The softmax p is computed once, and the backward
    pass turns it into the gradient, in the same memory where the backend allows that.
    """
    dtype = wide_dtype(keras.backend.standardize_dtype(logits.dtype))
    targets_share = 1.0 - smoothing

    # The targets, which have no gradient, are captured: backends disagree on what to return.
    @own_gradient
    def losses(logits: Any) -> Any:
        wide = ops.cast(logits, dtype)
        probabilities = ops.softmax(wide, axis=-1)
        # The largest probability is exp(max z - logsumexp z), at least 1 / V.
        # (`initial` allows a batch without rows.)
        largest = ops.max(wide, axis=-1, initial=-np.inf)
        log_sums = largest - ops.log(ops.max(probabilities, axis=-1, initial=0.0))
        of_targets = ops.cast(ops.take_along_axis(logits, targets, axis=-1)[:, 0], dtype)
        found = log_sums - targets_share * of_targets
        if smoothing:
            found = found - smoothing * ops.mean(wide, axis=-1)

        def gradient(*args: Any, upstream: Any = None) -> Any:
            (upstream,) = args if upstream is None else (upstream,)
            floor = smoothing / ops.cast(ops.shape(logits)[-1], dtype)
            rest = probabilities - floor if smoothing else probabilities
            # Only p - q of the targets is overwritten; a mask of their positions would be as large.
            at_targets = ops.exp(of_targets - log_sums) - (floor + targets_share)
            places = ops.stack([ops.arange(ops.shape(targets)[0]), targets[:, 0]], axis=-1)
            every = ops.scatter_update(rest * upstream[:, None], places, at_targets * upstream)
            return ops.cast(every, logits.dtype)

        return found, gradient

    return losses(logits)


class _Predictions(keras.metrics.Metric):
    """Loss and accuracy, each the mean over the predictions that count in all batches so far."""

    def __init__(self, name: str, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.loss = StreamingMean(name="loss")
        self.accuracy = StreamingMean(name="accuracy")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Adds a batch: int (B, T), -1 where a prediction does not count, and logits (B, T, V)."""
        counts = ops.greater_equal(y_true, 0)
        self.loss.add(token_cross_entropy(y_true, y_pred), counts, sample_weight)
        self.accuracy.add(is_likeliest(y_true, y_pred), counts, sample_weight)


@keras.saving.register_keras_serializable("kbert")
class PredictedTokenMetrics(_Predictions):
    """`masked_loss`, `masked_accuracy` and `perplexity` of the tokens to predict.

    The softmax over the vocabulary, most of the work, is computed once for all three. `prefix`
    replaces the "masked" of the first two names.
    """

    def __init__(
        self, prefix: str = "masked", name: str = "predicted_tokens", **kwargs: Any
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.prefix = prefix

    def result(self) -> dict[str, Any]:
        """Returns the three numbers; 0, 0 and 1 before any token counted."""
        loss = self.loss.result()
        return {
            f"{self.prefix}_loss": loss,
            f"{self.prefix}_accuracy": self.accuracy.result(),
            "perplexity": perplexity(loss),
        }

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "prefix": self.prefix}


@keras.saving.register_keras_serializable("kbert")
class NextSentenceMetrics(_Predictions):
    """`next_sentence_loss` and `next_sentence_accuracy` of pairs of sentences."""

    def __init__(self, name: str = "next_sentence", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Adds a batch: int (B,), the class of each pair, and logits (B, 2)."""
        y_true = ops.reshape(y_true, (-1, 1))
        super().update_state(y_true, ops.expand_dims(y_pred, 1), sample_weight)

    def result(self) -> dict[str, Any]:
        """Returns the two numbers; 0 before any pair counted."""
        return {
            "next_sentence_loss": self.loss.result(),
            "next_sentence_accuracy": self.accuracy.result(),
        }

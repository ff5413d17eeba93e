"""Metrics of BERT's pretraining, over all tokens and pairs of an epoch."""

from typing import Any

import keras
from keras import ops

from kbert.optimization.streaming_mean import StreamingMean
from kbert.optimization.translation_losses import is_likeliest, perplexity, token_cross_entropy


class _Predictions(keras.metrics.Metric):
    """Loss and accuracy, each the mean over the predictions that count in all batches so far.

    Args:
        name: of the metric.
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.loss = StreamingMean(name="loss")
        self.accuracy = StreamingMean(name="accuracy")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Adds a batch.

        Args:
            y_true: int (B, T), -1 where a prediction does not count.
            y_pred: logits (B, T, V).
            sample_weight: a weight per sequence (B,), or None.
        """
        counts = ops.greater_equal(y_true, 0)
        self.loss.add(token_cross_entropy(y_true, y_pred), counts, sample_weight)
        self.accuracy.add(is_likeliest(y_true, y_pred), counts, sample_weight)


@keras.saving.register_keras_serializable("kbert")
class PredictedTokenMetrics(_Predictions):
    """`masked_loss`, `masked_accuracy` and `perplexity` of the tokens to predict.

    The softmax over the vocabulary, most of the work, is computed once for all three.

    Args:
        prefix: "masked", or another prefix of the first two names.
        name: of the metric.
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
    """`next_sentence_loss` and `next_sentence_accuracy` of pairs of sentences.

    Args:
        name: of the metric.
    """

    def __init__(self, name: str = "next_sentence", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Adds a batch.

        Args:
            y_true: int (B,), the class of each pair.
            y_pred: logits (B, 2).
            sample_weight: a weight per pair (B,), or None.
        """
        y_true = ops.reshape(y_true, (-1, 1))
        super().update_state(y_true, ops.expand_dims(y_pred, 1), sample_weight)

    def result(self) -> dict[str, Any]:
        """Returns the two numbers; 0 before any pair counted."""
        return {
            "next_sentence_loss": self.loss.result(),
            "next_sentence_accuracy": self.accuracy.result(),
        }

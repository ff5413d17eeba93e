"""Regression of one sequence or a pair: the classifier's head with one output."""

from typing import Any

import keras
from keras import ops

from kbert.tasks.classification.head import SequenceClassification


@keras.saving.register_keras_serializable("kbert")
class SequenceRegression(SequenceClassification):
    """Predicts one number for each sequence, or pair of sequences.

    Args:
        encoder: a `Bert`.
        head: "pooler" or "two_layer".
        dropout: rate of the head's dropout.
    """

    def __init__(
        self, encoder: Any, head: str = "pooler", dropout: float = 0.1, **kwargs: Any
    ) -> None:
        super().__init__(encoder, 1, head, dropout, **kwargs)

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Maps the inputs of `Bert` to float32 numbers (B,).

        Args:
            inputs: dict of `token_ids` int (B, T), `segment_ids` int (B, T) and `padding_mask` bool
                (B, T), of which the last two may be absent.
            training: whether dropout is on.
        """
        return ops.squeeze(super().call(inputs, training=training), -1)

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        """Keras' `compute_loss`; losses average the last axis, which must not be the batch."""
        return super().compute_loss(x, _column(y), _column(y_pred), sample_weight, training)

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Keras' `compute_metrics`; metrics average the last axis too."""
        return super().compute_metrics(x, _column(y), _column(y_pred), sample_weight)

    def default_loss(self) -> Any:
        """Mean squared error."""
        return keras.losses.MeanSquaredError()

    def default_metrics(self) -> list[Any]:
        """No metrics besides the loss."""
        return []

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["num_labels"]
        return config


def _column(numbers: Any) -> Any:
    """Reshapes (B,) or (B, 1) to (B, 1)."""
    return None if numbers is None else ops.reshape(numbers, (-1, 1))

"""Regression of one sequence or a pair: the classifier's head with one output."""

from typing import Any

import keras
from keras import ops

from kbert.tasks.classification import SequenceClassification


@keras.saving.register_keras_serializable("kbert")
class SequenceRegression(SequenceClassification):
    """Gives each sequence, or pair of sequences, one number.

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
        """Maps the inputs of `Bert` to float32 numbers (B,)."""
        return ops.squeeze(super().call(inputs, training=training), -1)

    def default_loss(self) -> Any:
        """Mean squared error."""
        return keras.losses.MeanSquaredError()

    def default_metrics(self) -> list[Any]:
        """None beside the loss."""
        return []

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["num_labels"]
        return config

"""Regression of one sequence or a pair: the classifier's head with one output."""

from typing import Any

import keras
from keras import ops

from kbert.layers.linear import Linear
from kbert.models.encoder import Encoder
from kbert.pipelines.task_model import TaskModel
from kbert.tasks.classification.head import sequence_head


@keras.saving.register_keras_serializable("kbert")
class SequenceRegression(TaskModel):
    """Predicts one number for each sequence, or pair of sequences, with a `SequenceHead`."""

    arguments: tuple[str, ...] = ("head", "dropout")
    head_form = "sequence_form"

    def __init__(
        self, encoder: Encoder, head: str | None = None, dropout: float = 0.1, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.encoder = encoder
        self.head = head or encoder.sequence_form.head
        self.dropout = dropout
        self.sequence_head = sequence_head(self, 1, encoder.sequence_form)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Creates the head's weights."""
        if not getattr(self, "built", False):
            self.sequence_head.build_on(self.encoder)
            self.built = True

    def head_layers(self) -> dict[str, Linear]:
        return self.sequence_head.saved_layers()

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Maps the inputs of `Bert` to float32 numbers (B,).

        Args:
            inputs: dict of `token_ids` int (B, T), `segment_ids` int (B, T) and `padding_mask` bool
                (B, T), of which the last two may be absent.
            training: whether dropout is on.
        """
        return self.read_outputs(self.encoder(inputs, training=training), inputs, training)

    def read_outputs(self, outputs: Any, inputs: Any, training: bool | None = None) -> Any:
        """Maps `outputs` of the encoder for `inputs` to those of `call`, `training` or not."""
        return ops.squeeze(self.sequence_head(outputs, training=training), -1)

    def targets_of_loss(self, y: Any, y_pred: Any) -> tuple[Any, Any]:
        """Returns `y` and `y_pred` as columns: losses and metrics average the last axis."""
        return ops.reshape(y, (-1, 1)), ops.reshape(y_pred, (-1, 1))

    def default_loss(self) -> Any:
        """Mean squared error."""
        return keras.losses.MeanSquaredError()

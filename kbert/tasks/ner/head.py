"""Token classification: one dense layer over the encoder's hidden states."""

from typing import Any

import keras

from kbert.layers.linear import Linear, normal_linear
from kbert.layers.residual import Dropout
from kbert.models.encoder import Encoder, leave_pooler
from kbert.optimization.losses import wide_dtype
from kbert.optimization.sequence_losses import TokenAccuracy, TokenCrossEntropy
from kbert.pipelines.task_model import TaskModel


@keras.saving.register_keras_serializable("kbert")
class TokenClassification(TaskModel):
    """Predicts logits over `num_labels` classes for each token.

    Source: Devlin et al. 2019, section 5.3.

    Raises:
        ValueError: `num_labels` is below 1.
    """

    arguments: tuple[str, ...] = ("num_labels", "dropout")

    def __init__(
        self, encoder: Encoder, num_labels: int, dropout: float = 0.1, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if num_labels < 1:
            raise ValueError(f"`num_labels` must be at least 1. Received: num_labels={num_labels}")
        self.encoder = encoder
        self.num_labels = num_labels
        self.dropout = dropout
        self.dropout_layer = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        # In float32 at least, under any policy: labels are distinguished by small differences.
        self.token_head = normal_linear(
            num_labels,
            encoder.initializer_range,
            dtype=wide_dtype(self.compute_dtype),
            name="token_head",
        )
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Creates the head's weights."""
        if not getattr(self, "built", False):
            leave_pooler(self.encoder)
            self.dropout_layer.build()
            self.token_head.build((None, None, self.encoder.hidden_dim))
            self.built = True

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Maps the inputs of `Bert` to float32 logits (B, T, C).

        Args:
            inputs: dict of `token_ids` int (B, T), `segment_ids` int (B, T) and `padding_mask` bool
                (B, T), of which the last two may be absent.
            training: whether dropout is on.
        """
        return self.read_outputs(self.encoder(inputs, training=training), inputs, training)

    def read_outputs(self, outputs: Any, inputs: Any, training: bool | None = None) -> Any:
        """Maps `outputs` of the encoder for `inputs` to those of `call`, `training` or not."""
        states = outputs["sequence_output"]
        return self.token_head(self.dropout_layer(states, training=training))

    def head_layers(self) -> dict[str, Linear]:
        return {"classifier": self.token_head}

    def default_loss(self) -> Any:
        """Cross-entropy, the mean over labelled tokens."""
        return TokenCrossEntropy()

    def default_metrics(self) -> list[Any]:
        """Accuracy over labelled tokens."""
        return [TokenAccuracy()]

"""Question answering by span: a start vector and an end vector over the tokens of a sequence."""

from typing import Any

import keras
from keras import ops

from kbert.layers.linear import Linear, normal_linear
from kbert.layers.residual import Dropout
from kbert.models.encoder import Encoder, leave_pooler
from kbert.optimization.losses import wide_dtype
from kbert.optimization.sequence_losses import SpanCrossEntropy, span_accuracy
from kbert.pipelines.task_model import TaskModel

# The logit of padded positions: far below every other logit, yet finite.
_NEVER = -1e9


@keras.saving.register_keras_serializable("kbert")
class SpanExtraction(TaskModel):
    """Predicts for each token a logit as the start of the answer, and one as its end.

    Source: Devlin et al. 2019, sections 4.2 and 4.3. [CLS] stands for "no answer".
    """

    def __init__(self, encoder: Encoder, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.encoder = encoder
        rate, dtype = encoder.span_dropout, self.dtype_policy
        self.dropout_layer = Dropout(rate, dtype=dtype, name="dropout") if rate else None
        # In float32 at least, under any policy: answers are distinguished by small differences.
        self.span_head = normal_linear(
            2, encoder.initializer_range, dtype=wide_dtype(self.compute_dtype), name="span_head"
        )
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Creates the head's weights."""
        if not getattr(self, "built", False):
            leave_pooler(self.encoder)
            if self.dropout_layer is not None:
                self.dropout_layer.build()
            self.span_head.build((None, None, self.encoder.hidden_dim))
            self.built = True

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Maps the inputs of `Bert` to float32 logits (B, T, 2), start and end.

        Padded positions have logits of -1e9.

        Args:
            inputs: dict of `token_ids` int (B, T), `segment_ids` int (B, T) and `padding_mask` bool
                (B, T), of which the last two may be absent.
            training: whether dropout is on.
        """
        return self.read_outputs(self.encoder(inputs, training=training), inputs, training)

    def read_outputs(self, outputs: Any, inputs: Any, training: bool | None = None) -> Any:
        """Maps `outputs` of the encoder for `inputs` to those of `call`, `training` or not."""
        states = outputs["sequence_output"]
        if self.dropout_layer is not None:
            states = self.dropout_layer(states, training=training)
        logits = self.span_head(states)
        padding_mask = inputs.get("padding_mask")
        if padding_mask is None:
            return logits
        return ops.where(ops.expand_dims(padding_mask, -1), logits, _NEVER)

    def head_layers(self) -> dict[str, Linear]:
        return {"qa_outputs": self.span_head}

    def default_loss(self) -> Any:
        """The sum of the cross-entropies of start and end."""
        return SpanCrossEntropy()

    def default_metrics(self) -> list[Any]:
        """The share of sequences with correct start and end."""
        return [keras.metrics.MeanMetricWrapper(span_accuracy, name="span_accuracy")]

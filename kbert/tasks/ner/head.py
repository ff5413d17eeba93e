"""Token classification: one dense layer over the encoder's hidden states."""

from typing import Any

import keras
from keras import tree

from kbert.layers.linear import Linear, normal_linear
from kbert.layers.residual import Dropout
from kbert.models.encoder import Encoder, leave_pooler
from kbert.optimization.losses import wide_dtype
from kbert.optimization.sequence_losses import TokenAccuracy, TokenCrossEntropy
from kbert.pipelines.task_model import TaskModel
from kbert.tasks.classification.head import check_loss, check_metrics


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

    def note_compiled(self, given: list[Any]) -> None:
        loss, *metrics = given
        check_loss(loss)
        check_metrics(metrics)
        for name, wanted, one in (
            ("loss", "TokenCrossEntropy", loss),
            ("metrics", "TokenAccuracy", metrics),
        ):
            wrong = [part for part in tree.flatten(one) if counts_every_token(part)]
            if wrong:
                raise ValueError(
                    f"`{name}` must leave out the tokens without a label, whose target is -1: None "
                    f"for the task's own, such as {wanted} of kbert.optimization.sequence_losses, "
                    f"or one with ignore_class=-1. Received: {wrong[0]!r:.100}"
                )

    def default_loss(self) -> Any:
        """Cross-entropy, the mean over labelled tokens."""
        return TokenCrossEntropy()

    def default_metrics(self) -> list[Any]:
        """Accuracy over labelled tokens."""
        return [TokenAccuracy()]


def counts_every_token(one: Any) -> bool:
    """Returns whether a loss or metric of Keras, or its name, takes -1 for a class as any other."""
    if isinstance(one, str):
        name = one
    elif getattr(one, "__module__", "").startswith("keras."):
        name = getattr(one, "__name__", type(one).__name__)
    else:
        return False
    config = one.get_config() if hasattr(one, "get_config") else {}
    # "acc" stands for accuracy.
    is_of_classes = "acc" in name.lower() or name.lower().startswith("sparse")
    return is_of_classes and config.get("ignore_class") != -1

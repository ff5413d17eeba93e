"""Multiple choice: the pair head on each choice, softmax over the choices."""

from typing import Any

import keras
from keras import ops

from kbert.layers.linear import Linear
from kbert.models.encoder import Encoder
from kbert.optimization.losses import SoftmaxCrossEntropy, class_distribution, label_accuracy
from kbert.pipelines.task_model import TaskModel
from kbert.tasks.classification.head import (
    check_loss,
    check_metrics,
    need_distributions,
    sequence_head,
)


@keras.saving.register_keras_serializable("kbert")
class ChoiceSelection(TaskModel):
    """Predicts a logit for each of K choices; the choices of an example share one softmax.

    Source: Devlin et al. 2019, section 4.4 (SWAG).
    """

    arguments: tuple[str, ...] = ("head", "dropout")
    head_form = "choice_form"
    # Whether a loss or metric takes one number per choice; set by `compile`.
    needs_distributions = False

    def __init__(
        self, encoder: Encoder, head: str | None = None, dropout: float = 0.1, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.encoder = encoder
        self.head = head or encoder.choice_form.head
        self.dropout = dropout
        self.sequence_head = sequence_head(self, 1, encoder.choice_form)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Creates the head's weights."""
        if not getattr(self, "built", False):
            self.sequence_head.build_on(self.encoder)
            self.built = True

    def head_layers(self) -> dict[str, Linear]:
        return self.sequence_head.saved_layers()

    def note_compiled(self, given: list[Any]) -> None:
        check_loss(given[0])
        check_metrics(given[1:])
        self.needs_distributions = need_distributions(given)

    def targets_of_loss(self, y: Any, y_pred: Any) -> tuple[Any, Any]:
        """Returns `y`, as distributions where loss or metrics need them, and `y_pred`."""
        return (class_distribution(y, y_pred) if self.needs_distributions else y), y_pred

    def default_loss(self) -> Any:
        """Cross-entropy with the indices of the right choices, or distributions."""
        return SoftmaxCrossEntropy()

    def default_metrics(self) -> list[Any]:
        """Accuracy."""
        return [keras.metrics.MeanMetricWrapper(label_accuracy, name="accuracy")]

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Scores the choices.

        Args:
            inputs: `token_ids`, `segment_ids`, `padding_mask`, each (B, K, T): the context with
                each of the K choices.
            training: whether dropout is on.

        Returns:
            float32 logits (B, K).
        """
        shape = ops.shape(inputs["token_ids"])
        flat = {name: ops.reshape(x, (-1, x.shape[-1] or shape[2])) for name, x in inputs.items()}
        logits = self.sequence_head(self.encoder(flat, training=training), training=training)
        return ops.reshape(logits, (shape[0], shape[1]))

"""Several labels of one sequence: the classifier's head, with each output a question of its own."""

from typing import Any

import keras
from keras import tree

from kbert.layers.linear import Linear
from kbert.models.encoder import Encoder
from kbert.optimization.label_losses import MicroF1, SigmoidCrossEntropy, exact_match
from kbert.optimization.losses import SoftmaxCrossEntropy
from kbert.pipelines.task_model import TaskModel
from kbert.tasks.classification.head import (
    check_metrics,
    need_distributions,
    sequence_head,
    takes_logits,
)

# Names of Keras' losses and metrics that take each example to have one class.
_OF_ONE_CLASS = ("accuracy", "acc", "crossentropy", "ce")


@keras.saving.register_keras_serializable("kbert")
class MultiLabelClassification(TaskModel):
    """Predicts logits of `num_labels` independent labels for each sequence, or pair.

    Raises:
        ValueError: `num_labels` is below 1, or `head` is "two_layer" with a causal encoder.
    """

    arguments: tuple[str, ...] = ("num_labels", "head", "dropout")
    head_form = "sequence_form"

    def __init__(
        self,
        encoder: Encoder,
        num_labels: int,
        head: str | None = None,
        dropout: float = 0.1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if num_labels < 1:
            raise ValueError(f"`num_labels` must be at least 1. Received: num_labels={num_labels}")
        self.encoder = encoder
        self.num_labels = num_labels
        self.head = head or encoder.sequence_form.head
        self.dropout = dropout
        self.sequence_head = sequence_head(self, num_labels, encoder.sequence_form)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Creates the head's weights."""
        if not getattr(self, "built", False):
            self.sequence_head.build_on(self.encoder)
            self.built = True

    def head_layers(self) -> dict[str, Linear]:
        return self.sequence_head.saved_layers()

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Maps the inputs of `Bert` to float32 logits (B, C), of which each has its own sigmoid.

        Args:
            inputs: dict of `token_ids` int (B, T), `segment_ids` int (B, T) and `padding_mask` bool
                (B, T), of which the last two may be absent.
            training: whether dropout is on.
        """
        return self.read_outputs(self.encoder(inputs, training=training), inputs, training)

    def read_outputs(self, outputs: Any, inputs: Any, training: bool | None = None) -> Any:
        """Maps `outputs` of the encoder for `inputs` to those of `call`, `training` or not."""
        return self.sequence_head(outputs, training=training)

    def note_compiled(self, given: list[Any]) -> None:
        loss, *metrics = given
        if loss is not None and not fits_labels(loss):
            raise ValueError(
                "`loss` must be of independent labels and of logits, such as SigmoidCrossEntropy "
                "or keras.losses.BinaryCrossentropy(from_logits=True). Received: "
                f"loss={loss!r:.100}"
            )
        wrong = [one for one in tree.flatten(metrics) if one is not None and is_of_one_class(one)]
        if wrong:
            raise ValueError(
                "`metrics` must be of several labels, such as MicroF1 of "
                f"kbert.optimization.label_losses. Received: {wrong[0]!r:.100}"
            )
        check_metrics(metrics)

    def default_loss(self) -> Any:
        """Binary cross-entropy of each label, with targets in [0, 1]."""
        return SigmoidCrossEntropy()

    def default_metrics(self) -> list[Any]:
        """F1 of all labels, and the share of examples of which all are right; both at 1/2."""
        return [MicroF1(), keras.metrics.MeanMetricWrapper(exact_match, name="exact_match")]


def fits_labels(loss: Any) -> bool:
    """Returns whether a loss may be of independent labels, and of logits."""
    if isinstance(loss, str):
        loss = keras.losses.get(loss)
    is_of_classes = isinstance(loss, SoftmaxCrossEntropy) or is_of_one_class(loss)
    return not is_of_classes and takes_logits(loss)


def is_of_one_class(one: Any) -> bool:
    """Returns whether a loss or metric of Keras, or its name, takes examples to have one class."""
    name = one if isinstance(one, str) else getattr(one, "__name__", type(one).__name__)
    plain = name.lower().replace("_", "")
    is_categorical = need_distributions([one]) and not plain.startswith(("f1score", "fbetascore"))
    return is_categorical or plain.startswith("sparse") or plain in _OF_ONE_CLASS

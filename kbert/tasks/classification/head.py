"""Classification and regression of one sequence: an encoder and a head on its first position."""

from typing import Any

import keras
from keras import tree

from kbert.layers.core.dropout import Dropout
from kbert.layers.core.linear import Linear, normal_linear
from kbert.models.bert import Bert
from kbert.models.encoder_task import EncoderTask
from kbert.optimization.losses import (
    SoftmaxCrossEntropy,
    class_distribution,
    label_accuracy,
    widened,
)

HEADS = ("pooler", "two_layer")
# Prefixes of Keras' losses and metrics that take one number per class.
_CATEGORICAL = ("categorical", "kldivergence", "f1score", "fbetascore")


@keras.saving.register_keras_serializable("kbert")
class SequenceHead(keras.layers.Layer):
    """Maps an encoder's output to `units` numbers per sequence.

    "pooler": one dense layer on the pooled output (Devlin et al. 2019, section 4.1).
    "two_layer": dense, tanh, dense on the state of [CLS]; the pooler is not used.

    Args:
        units: numbers per sequence.
        head: "pooler" or "two_layer".
        dropout: rate of the dropout before each dense layer.
        initializer_range: standard deviation of the new weights.

    Raises:
        ValueError: `head` is neither of these.
    """

    def __init__(
        self,
        units: int,
        head: str = "pooler",
        dropout: float = 0.1,
        initializer_range: float = 0.02,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if head not in HEADS:
            raise ValueError(f"`head` must be one of {list(HEADS)}. Received: head={head!r}")
        self.units = units
        self.head = head
        self.dropout = dropout
        self.initializer_range = initializer_range
        self.dropout_layer = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.classifier = self._dense(units, None, "classifier")

    def _dense(self, units: int, activation: str | None, name: str) -> Linear:
        dtype = self.dtype_policy
        return normal_linear(units, self.initializer_range, activation, dtype=dtype, name=name)

    def build(self, hidden_dim: int) -> None:
        """Creates the weights for an encoder of width `hidden_dim`."""
        self.dropout_layer.build()
        if self.head == "two_layer":
            self.hidden = self._dense(hidden_dim, "tanh", "hidden")
            self.hidden.build((None, hidden_dim))
        self.classifier.build((None, hidden_dim))
        self.built = True

    def call(self, outputs: Any, training: bool | None = None) -> Any:
        """Applies the head.

        Args:
            outputs: the dict of outputs of `Bert`.
            training: whether dropout is on.

        Returns:
            float32 (B, units).
        """
        if self.head == "two_layer":
            first = self.dropout_layer(outputs["sequence_output"][:, 0], training=training)
            state = self.hidden(first)
        else:
            state = outputs["pooled_output"]
        logits = self.classifier(self.dropout_layer(state, training=training))
        return widened(logits)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "units": self.units,
            "head": self.head,
            "dropout": self.dropout,
            "initializer_range": self.initializer_range,
        }


@keras.saving.register_keras_serializable("kbert")
class SequenceClassification(EncoderTask):
    """Predicts logits over classes for each sequence, or pair of sequences.

    Args:
        encoder: a `Bert`.
        num_labels: C, the number of classes.
        head: "pooler" or "two_layer", see `SequenceHead`.
        dropout: rate of the head's dropout.

    Raises:
        ValueError: `num_labels` is below 1, or `head` is "two_layer" with a causal encoder.
    """

    # Whether a loss or metric takes one number per class; set by `compile`.
    needs_distributions = False

    def __init__(
        self,
        encoder: Bert,
        num_labels: int,
        head: str = "pooler",
        dropout: float = 0.1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if num_labels < 1:
            raise ValueError(f"`num_labels` must be at least 1. Received: num_labels={num_labels}")
        if head == "two_layer" and encoder.causal:
            raise ValueError(
                '`head` must be "pooler" for a causal encoder, whose [CLS] sees itself alone. '
                f"Received: head={head!r}"
            )
        self.encoder = encoder
        self.num_labels = num_labels
        self.head = head
        self.dropout = dropout
        self.sequence_head = SequenceHead(
            num_labels,
            head,
            dropout,
            encoder.initializer_range,
            dtype=self.dtype_policy,
            name="sequence_head",
        )
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Creates the head's weights."""
        if not getattr(self, "built", False):
            if self.head == "two_layer":
                self.encoder.pooler.trainable = False  # not used: nothing would train it
            self.sequence_head.build(self.encoder.hidden_dim)
            self.built = True

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Maps the inputs of `Bert` to float32 logits (B, C).

        Args:
            inputs: dict of `token_ids` int (B, T), `segment_ids` int (B, T) and `padding_mask` bool
                (B, T), of which the last two may be absent.
            training: whether dropout is on.
        """
        return self.sequence_head(self.encoder(inputs, training=training), training=training)

    def head_layers(self) -> dict[str, Linear]:
        named = {name: getattr(self.sequence_head, name, None) for name in ("hidden", "classifier")}
        return {name: layer for name, layer in named.items() if layer is not None}

    def compile(
        self, optimizer: Any = None, loss: Any = None, metrics: Any = None, **kwargs: Any
    ) -> None:
        """Prepares the model for training.

        Args:
            optimizer: a Keras optimizer or its name; None for the task's own.
            loss: a Keras loss or its name; None for the task's own. One that needs distributions
                over the classes, such as `keras.losses.CategoricalCrossentropy`, gets them from
                class ids too, and so do all metrics beside it.
            metrics: a list of Keras metrics or their names; None for the task's own.
            **kwargs: further arguments of Keras' `compile`.
        """
        super().compile(optimizer, loss, metrics, **kwargs)
        used = [loss, metrics, kwargs.get("weighted_metrics")]
        self.needs_distributions = any(map(_is_categorical, tree.flatten(used)))

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        """Keras' `compute_loss`, with distributions over the classes where the loss needs them."""
        return super().compute_loss(
            x, self._as_needed(y, y_pred), y_pred, sample_weight, training
        )

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Keras' `compute_metrics`, with distributions where a metric needs them."""
        return super().compute_metrics(x, self._as_needed(y, y_pred), y_pred, sample_weight)

    def _as_needed(self, y: Any, y_pred: Any) -> Any:
        return y if y is None or not self.needs_distributions else class_distribution(y, y_pred)

    def default_loss(self) -> Any:
        """Cross-entropy with class ids or distributions."""
        return SoftmaxCrossEntropy()

    def default_metrics(self) -> list[Any]:
        """Accuracy."""
        return [keras.metrics.MeanMetricWrapper(label_accuracy, name="accuracy")]

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "num_labels": self.num_labels,
            "head": self.head,
            "dropout": self.dropout,
        }


def _is_categorical(loss_or_metric: Any) -> bool:
    """Returns whether a Keras loss or metric, or its name, needs a distribution over classes."""
    name = loss_or_metric
    if not isinstance(name, str):
        name = getattr(loss_or_metric, "__name__", type(loss_or_metric).__name__)
    name = name.lower().replace("_", "").removeprefix("topk")
    return name.startswith(_CATEGORICAL)

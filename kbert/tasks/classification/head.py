"""Classification and regression of one sequence: an encoder and a head on its first position."""

import inspect
from contextlib import suppress
from typing import Any

import keras
from keras import tree

from kbert.layers.linear import Linear, normal_linear
from kbert.layers.residual import Dropout
from kbert.models.encoder import Encoder, HeadForm, leave_pooler, read_pooler
from kbert.optimization.losses import (
    SoftmaxCrossEntropy,
    class_distribution,
    label_accuracy,
    widened,
)
from kbert.pipelines.task_model import TaskModel

HEADS = ("pooler", "two_layer")
# Prefixes of Keras' losses and metrics that take one number per class.
_CATEGORICAL = ("categorical", "kldivergence", "f1score", "fbetascore")


@keras.saving.register_keras_serializable("kbert")
class SequenceHead(keras.layers.Layer):
    """Maps an encoder's output to `units` numbers per sequence.

    "pooler": one dense layer on the pooled output (Devlin et al. 2019, section 4.1).
    "two_layer": dense, `activation`, dense on the state of [CLS]; the pooler is not used.
    Dropout precedes each dense layer, of two the first only if `drops_state`, and
    `initializer_range` is the standard deviation of new weights.

    Raises:
        ValueError: `head` is neither of these.
    """

    def __init__(
        self,
        units: int,
        head: str = "pooler",
        dropout: float = 0.1,
        initializer_range: float = 0.02,
        activation: str = "tanh",
        drops_state: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if head not in HEADS:
            raise ValueError(f"`head` must be one of {list(HEADS)}. Received: head={head!r}")
        self.units = units
        self.head = head
        self.dropout = dropout
        self.initializer_range = initializer_range
        self.activation, self.drops_state = activation, drops_state
        self.dropout_layer = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.classifier = self._dense(units, None, "classifier")

    def _dense(self, units: int, activation: str | None, name: str) -> Linear:
        dtype = self.dtype_policy
        return normal_linear(units, self.initializer_range, activation, dtype=dtype, name=name)

    def build(self, hidden_dim: int) -> None:
        """Creates the weights for an encoder of width `hidden_dim`."""
        self.dropout_layer.build()
        if self.head == "two_layer":
            self.hidden = self._dense(hidden_dim, self.activation, "hidden")
            self.hidden.build((None, hidden_dim))
        self.classifier.build((None, hidden_dim))
        self.built = True

    def build_on(self, encoder: Encoder) -> None:
        """Creates the weights for an encoder, whose pooler learns only where the head reads it.

        Raises:
            ValueError: the head is "two_layer" and the encoder is causal, or it is "pooler" and the
                encoder has none.
        """
        if self.head == "two_layer":
            if encoder.causal:
                raise ValueError(
                    '`head` must be "pooler" for a causal encoder, whose [CLS] sees itself alone. '
                    f"Received: head={self.head!r}"
                )
            leave_pooler(encoder)
        elif encoder.pooler is None:
            raise ValueError(
                f'`head` must be "two_layer" for a {type(encoder).__name__}, which has no pooler. '
                f"Received: head={self.head!r}"
            )
        else:
            read_pooler(encoder)
        self.build(encoder.hidden_dim)

    def saved_layers(self) -> dict[str, Linear]:
        """Returns the dense layers by the names that their weights are saved under."""
        first = {"hidden": self.hidden} if self.head == "two_layer" else {}
        return {**first, "classifier": self.classifier}

    def call(self, outputs: Any, training: bool | None = None) -> Any:
        """Maps the dict of outputs of `Bert` to float32 (B, units)."""
        if self.head == "two_layer":
            first = outputs["sequence_output"][:, 0]
            if self.drops_state:
                first = self.dropout_layer(first, training=training)
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
            "activation": self.activation,
            "drops_state": self.drops_state,
        }


@keras.saving.register_keras_serializable("kbert")
class SequenceClassification(TaskModel):
    """Predicts logits over `num_labels` classes for each sequence, or pair, with a `SequenceHead`.

    `head` is None for the one that the encoder was published with.

    Raises:
        ValueError: `num_labels` is below 1, or `head` is "two_layer" with a causal encoder or
            "pooler" with one that has none.
    """

    arguments: tuple[str, ...] = ("num_labels", "head", "dropout")
    head_form = "sequence_form"
    # Whether a loss or metric takes one number per class; set by `compile`.
    needs_distributions = False

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

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Maps the inputs of `Bert` to float32 logits (B, C).

        Args:
            inputs: dict of `token_ids` int (B, T), `segment_ids` int (B, T) and `padding_mask` bool
                (B, T), of which the last two may be absent.
            training: whether dropout is on.
        """
        return self.read_outputs(self.encoder(inputs, training=training), inputs, training)

    def read_outputs(self, outputs: Any, inputs: Any, training: bool | None = None) -> Any:
        """Maps `outputs` of the encoder for `inputs` to those of `call`, `training` or not."""
        return self.sequence_head(outputs, training=training)

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
        """Cross-entropy with class ids or distributions."""
        return SoftmaxCrossEntropy()

    def default_metrics(self) -> list[Any]:
        """Accuracy."""
        return [keras.metrics.MeanMetricWrapper(label_accuracy, name="accuracy")]


def sequence_head(model: Any, units: int, form: HeadForm) -> SequenceHead:
    """Makes the head of a model with `encoder`, `head` and `dropout`."""
    return SequenceHead(
        units,
        model.head,
        model.dropout,
        model.encoder.initializer_range,
        form.activation,
        form.drops_state,
        dtype=model.dtype_policy,
        name="sequence_head",
    )


def takes_logits(loss: Any) -> bool:
    """Returns whether a loss, if it is one of Keras' of logits or probabilities, is of logits."""
    loss = keras.losses.get(loss) if isinstance(loss, str) else loss
    if isinstance(loss, keras.losses.Loss):
        return bool(loss.get_config().get("from_logits", True))
    option = inspect.signature(loss).parameters.get("from_logits")
    return option is None or bool(option.default)


def check_loss(given: Any) -> None:
    """Raises a ValueError for a loss of Keras, or its name, that takes probabilities."""
    wrong = [one for one in tree.flatten(given) if one is not None and not takes_logits(one)]
    if wrong:
        raise ValueError(
            "`loss` must take logits, which is what the model returns: None for the task's "
            "own, or a loss of keras.losses made with from_logits=True. Received: "
            f"loss={wrong[0]!r:.100}, which takes probabilities"
        )


def check_metrics(given: Any) -> None:
    """Raises a ValueError for a metric of Keras, or its name, that takes probabilities."""
    wrong = [one for one in tree.flatten(given) if one is not None and _takes_probabilities(one)]
    if wrong:
        raise ValueError(
            "`metrics` must take logits, which is what the model returns: with from_logits=True or "
            "a threshold of logits, such as keras.metrics.Precision(thresholds=0.0). Received: "
            f"{wrong[0]!r:.100}, which takes probabilities"
        )


def _takes_probabilities(metric: Any) -> bool:
    if isinstance(metric, str):
        if metric.lower() in ("crossentropy", "ce"):
            return True
        with suppress(ValueError):  # of a name that Keras does not know, as it will say
            metric = keras.metrics.get(metric)
    if not getattr(metric, "__module__", "").startswith("keras."):
        return False
    if isinstance(metric, keras.metrics.Metric):
        config = metric.get_config()
    elif inspect.isfunction(metric):
        config = {n: one.default for n, one in inspect.signature(metric).parameters.items()}
    else:
        return False
    if "from_logits" in config:
        return not config["from_logits"]
    if "thresholds" in config:  # None stands for 0.5
        values = tree.flatten([0.5 if config["thresholds"] is None else config["thresholds"]])
    else:
        values = [config["threshold"]] if config.get("threshold") is not None else []
    return "num_thresholds" in config or any(0 < value < 1 for value in values)


def need_distributions(given: Any) -> bool:
    """Returns whether one of Keras' losses and metrics, or their names, needs a distribution."""
    names = (
        one if isinstance(one, str) else getattr(one, "__name__", type(one).__name__)
        for one in tree.flatten(given)
    )
    plain = (name.lower().replace("_", "").removeprefix("topk") for name in names)
    return any(name.startswith(_CATEGORICAL) for name in plain)

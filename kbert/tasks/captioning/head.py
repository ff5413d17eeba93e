"""Captioning: the next token of a caption, at every position, given an image."""

from typing import Any

import keras
from keras import ops

from kbert.layers.residual import Dropout
from kbert.models.captioning.feature_extractor import FeatureExtractor
from kbert.models.weights import trainable_but
from kbert.optimization.adamw import AdamW
from kbert.optimization.losses import over_replicas, replica_context, whole_batch_loss
from kbert.optimization.next_token_losses import (
    LabelSmoothedCrossEntropy,
    NextTokenAccuracy,
    Perplexity,
)
from kbert.optimization.sequence_losses import counting_tokens
from kbert.pipelines.task_model import TaskModel

FEATURES, PIXELS = "features", "pixels"


@keras.saving.register_keras_serializable("kbert")
class Captioning(TaskModel):
    """A decoder of captions that learns to predict them, token by token, from images.

    Targets are int (B, T), the tokens after those of `target_token_ids`; -1 is ignored. The network
    that sees the images is frozen, and its features may be computed beforehand, or learns too.

    Args:
        decoder: a model of `kbert.architectures.CAPTIONERS`.
        extractor: the network that sees the images.
        train_extractor: whether it learns too.
        label_smoothing: share of the target's probability that is spread over all tokens.
        attention_penalty: weight of the decoder's `attention_loss` beside the cross-entropy.
        feature_dropout: rate of the dropout on the extractor's channels, each at all places of an
            image or at none.

    Raises:
        ValueError: the decoder takes other features than the extractor gives.
    """

    parts = ("decoder", "extractor", "subwords")
    arguments: tuple[str, ...] = (
        "train_extractor",
        "label_smoothing",
        "attention_penalty",
        "feature_dropout",
    )

    def __init__(
        self,
        decoder: Any,
        extractor: FeatureExtractor,
        train_extractor: bool = False,
        label_smoothing: float = 0.0,
        attention_penalty: float = 1.0,
        feature_dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if decoder.feature_dim != extractor.feature_dim:
            raise ValueError(
                "`decoder` must take vectors as wide as the extractor's. Received: "
                f"{decoder.feature_dim} and {extractor.feature_dim}"
            )
        self.decoder, self.extractor = decoder, extractor
        self.train_extractor = train_extractor
        self.label_smoothing, self.attention_penalty = label_smoothing, attention_penalty
        self.feature_dropout = feature_dropout
        self.channel_dropout = Dropout(
            feature_dropout, dtype=self.dtype_policy, name="channel_dropout"
        )
        self.channel_dropout.build()
        extractor.trainable = train_extractor
        self.built = True

    def _hold_extractor(self, value: bool) -> None:
        if getattr(self, "built", False):
            self.extractor.trainable = value and self.train_extractor

    trainable = trainable_but(
        _hold_extractor, "Whether weights are trainable; the extractor's are only where it learns."
    )

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: the decoder and the extractor have their weights."""

    def call(self, inputs: dict[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Computes the decoder's outputs, of which `logits` are float32 (B, T, V).

        Args:
            inputs: dict of `target_token_ids` int (B, T), which begin with the start token, and
                `pixels` (B, H, W, 3) in 0..255 or, instead of them, `features` (B, L, M).
            training: whether dropout is on.
        """
        features = inputs.get(FEATURES)
        if features is None:
            features = self.extractor(inputs[PIXELS], training=training)
        if training and self.feature_dropout > 0:
            kept = ops.ones_like(features[:, :1])
            features = features * self.channel_dropout(kept, training=True)
        known = {FEATURES: features, "target_token_ids": inputs["target_token_ids"]}
        found: dict[str, Any] = self.decoder(known, training=training)
        return found

    def default_loss(self) -> Any:
        """Cross-entropy, the mean over all real tokens."""
        return LabelSmoothedCrossEntropy(self.label_smoothing)

    def default_optimizer(self) -> Any:
        """Adam with the rate of the paper's usual reimplementations."""
        return AdamW(4e-4, 0.0, global_clipnorm=5.0)

    def default_metrics(self) -> list[Any]:
        """Accuracy and perplexity of the next token, with teacher forcing."""
        return [NextTokenAccuracy(), Perplexity()]

    def targets_of_loss(self, y: Any, y_pred: Any) -> tuple[Any, Any]:
        """Returns `y` and the logits in `y_pred`."""
        return y, y_pred["logits"]

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        """Computes the loss; in training with what the decoder adds, per token as the rest is."""
        loss = super().compute_loss(x, y, y_pred, sample_weight, training)
        if not training or y is None:
            return loss
        more = self.decoder.attention_loss(y, y_pred, self.attention_penalty)
        rows = ops.shape(more)[0]
        counted = ops.sum(ops.cast(counting_tokens(y), more.dtype))
        all_rows, counted = over_replicas(ops.cast(rows, more.dtype), counted)
        per_row = ops.mean(more) * (all_rows / ops.maximum(counted, 1.0))
        context = replica_context()
        if context is not None:  # as Keras divides other losses
            per_row = per_row / context.num_replicas_in_sync
        return loss + ops.cast(whole_batch_loss(per_row, rows), loss.dtype)

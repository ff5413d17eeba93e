"""Sentence embeddings: one vector of all states of an encoder."""

from typing import Any

import keras
from keras import ops

from kbert.layers.linear import Linear, normal_linear
from kbert.layers.pooling import pool
from kbert.models.encoder import Encoder, leave_pooler
from kbert.optimization.embedding_losses import ByTargets, unit_length
from kbert.optimization.losses import widened
from kbert.pipelines.task_model import TaskModel

POOLINGS = ("mean", "cls", "max")


@keras.saving.register_keras_serializable("kbert")
class SequenceEmbedding(TaskModel):
    """Maps each sequence to a vector: pooled states, an optional dense layer, and unit length.

    "mean" and "max" are over the real tokens, [CLS] and [SEP] among them; "cls" is the state of
    [CLS]. The encoder's own pooler is not used, and does not train.

    Source: Reimers and Gurevych 2019 (arXiv:1908.10084), section 3.

    Raises:
        ValueError: `pooling` is none of these, or is "cls" for a causal encoder; or `dense` is
            below 1.
    """

    arguments: tuple[str, ...] = ("pooling", "normalize", "dense", "dense_activation")
    needs_pooler = False
    head_names = ("dense.",)

    def __init__(
        self,
        encoder: Encoder,
        pooling: str = "mean",
        normalize: bool = True,
        dense: int | None = None,
        dense_activation: str | None = "tanh",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if pooling not in POOLINGS:
            raise ValueError(
                f"`pooling` must be one of {list(POOLINGS)}. Received: pooling={pooling!r}"
            )
        if pooling == "cls" and encoder.causal:
            raise ValueError(
                '`pooling` must be "mean" or "max" for a causal encoder, whose [CLS] sees itself '
                f"alone. Received: pooling={pooling!r}"
            )
        if dense is not None and dense < 1:
            raise ValueError(f"`dense` must be at least 1, or None. Received: dense={dense}")
        self.encoder = encoder
        self.pooling, self.normalize = pooling, normalize
        self.dense, self.dense_activation = dense, dense_activation
        self.dense_layer = None
        if dense is not None:
            given = {"dtype": self.dtype_policy, "name": "dense"}
            start = encoder.initializer_range
            self.dense_layer = normal_linear(dense, start, dense_activation, **given)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Creates the weights of the dense layer."""
        if not getattr(self, "built", False):
            leave_pooler(self.encoder)
            if self.dense_layer is not None:
                self.dense_layer.build((None, self.encoder.hidden_dim))
            self.built = True

    @property
    def width(self) -> int:
        """The dimension D of the vectors."""
        return self.encoder.hidden_dim if self.dense is None else self.dense

    def head_layers(self) -> dict[str, Linear]:
        return {} if self.dense_layer is None else {"dense": self.dense_layer}

    def default_loss(self) -> Any:
        """Cosine regression where the targets are scores, else multiple negatives."""
        return ByTargets()

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Maps the inputs of `Bert`, or K of them an example, to vectors.

        Args:
            inputs: dict of `token_ids` int (B, T), `segment_ids` int (B, T) and `padding_mask` bool
                (B, T), of which the last two may be absent; or each (B, K, T).
            training: whether dropout is on.

        Returns:
            float32 (B, D), or (B, K, D).
        """
        shape = ops.shape(inputs["token_ids"])
        if len(shape) == 2:
            return self.finished(self.pooled(inputs, training), training)
        flat = {name: ops.reshape(x, (-1, x.shape[-1] or shape[2])) for name, x in inputs.items()}
        vectors = self.finished(self.pooled(flat, training), training)
        count = inputs["token_ids"].shape[1] or shape[1]
        return ops.reshape(vectors, (-1, count, self.width))

    def pooled(self, inputs: Any, training: bool | None = None) -> Any:
        """Returns the pooled states float32 (B, hidden_dim), before the dense layer.

        Args:
            inputs: dict of `token_ids` int (B, T), `segment_ids` int (B, T) and `padding_mask` bool
                (B, T), of which the last two may be absent.
            training: whether dropout is on.
        """
        states = self.encoder(inputs, training=training)["sequence_output"]
        if self.pooling == "cls":
            return widened(states[:, 0])
        return pool(widened(states), inputs.get("padding_mask"), self.pooling)

    def finished(self, pooled: Any, training: bool | None = None) -> Any:
        """Returns the vectors float32 (B, D) of pooled states.

        Args:
            pooled: float32 (B, hidden_dim).
            training: whether dropout is on.
        """
        if self.dense_layer is not None:
            pooled = widened(self.dense_layer(pooled, training=training))
        return unit_length(pooled) if self.normalize else pooled

"""Base class of the layers of an encoder and of a decoder."""

from typing import Any

import keras

from kbert.layers.core.feed_forward import FeedForward
from kbert.layers.core.residual import Residual


class TransformerBlock(keras.layers.Layer):
    """Attention followed by a feed-forward network, each within a residual connection.

    A subclass makes its sublayers in the order in which they compute: that is the order of the
    weights, by which saved optimizer states are matched to theirs. Defaults are the subclass's.

    Args:
        num_heads: N; must divide the hidden width.
        intermediate_dim: I, width of the feed-forward network.
        dropout: rate of the dropout on the output of each sublayer.
        attention_dropout: rate of the dropout on the attention probabilities.
        activation: name of the feed-forward network's activation.
        norm: "post" or "pre".
        epsilon: of the LayerNorms.
        kernel_initializer: Keras initializer of the matrices.
    """

    feed_forward: FeedForward
    feed_forward_residual: Residual

    def __init__(
        self,
        num_heads: int,
        intermediate_dim: int,
        dropout: float,
        attention_dropout: float,
        activation: str,
        norm: str,
        epsilon: float,
        kernel_initializer: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.num_heads = num_heads
        self.intermediate_dim = intermediate_dim
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.activation = activation
        self.norm = norm
        self.epsilon = epsilon
        self.kernel_initializer = keras.initializers.get(kernel_initializer)

    def _attention(self, kind: Any, name: str) -> Any:
        return kind(
            self.num_heads,
            self.attention_dropout,
            kernel_initializer=keras.initializers.serialize(self.kernel_initializer),
            dtype=self.dtype_policy,
            name=name,
        )

    def _feed_forward(self) -> FeedForward:
        return FeedForward(
            self.intermediate_dim,
            self.activation,
            keras.initializers.serialize(self.kernel_initializer),
            dtype=self.dtype_policy,
            name="feed_forward",
        )

    def _residual(self, name: str) -> Residual:
        return Residual(
            self.dropout, self.norm, self.epsilon, dtype=self.dtype_policy, name=name
        )

    def _fed(self, inputs: Any, training: bool | None, seed: Any = None) -> Any:
        return self.feed_forward_residual(
            inputs,
            sublayer=lambda x: self.feed_forward(x, training=training),
            training=training,
            seed=seed,
        )

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "intermediate_dim": self.intermediate_dim,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "activation": self.activation,
            "norm": self.norm,
            "epsilon": self.epsilon,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }

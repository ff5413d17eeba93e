"""One layer of a Transformer encoder, and what it shares with that of a decoder."""

from typing import Any

import keras

from kbert.layers.attention import SelfAttention
from kbert.layers.linear import FeedForward
from kbert.layers.masks import with_padding
from kbert.layers.residual import Residual, ShapeKeepingLayer

# Sublayers of a block, as adapters know them.
ATTENTION, FEED_FORWARD = "attention", "feed_forward"


class TransformerBlock(ShapeKeepingLayer):
    """Attention followed by a feed-forward network, each within a residual connection.

    Sublayers are made in the order in which they compute: that is the order of the weights, by
    which saved optimizer states are matched to theirs. Arguments are those of `EncoderBlock`.
    """

    def __init__(
        self,
        num_heads: int,
        intermediate_dim: int,
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        activation: str = "gelu",
        norm: str = "post",
        epsilon: float = 1e-12,
        kernel_initializer: Any = "glorot_uniform",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_heads, self.intermediate_dim = num_heads, intermediate_dim
        self.dropout, self.attention_dropout = dropout, attention_dropout
        self.activation, self.norm, self.epsilon = activation, norm, epsilon
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self._make_attentions()
        start = keras.initializers.serialize(self.kernel_initializer)
        given = {"dtype": self.dtype_policy, "name": "feed_forward"}
        self.feed_forward = FeedForward(intermediate_dim, activation, start, **given)
        self.feed_forward_residual = self._residual("feed_forward_residual")

    def _make_attentions(self) -> None:
        """Makes what precedes the feed-forward network."""
        raise NotImplementedError(f"{type(self).__name__} must have an attention")

    def _attention(self, kind: Any, name: str) -> Any:
        start = keras.initializers.serialize(self.kernel_initializer)
        given = {"kernel_initializer": start, "dtype": self.dtype_policy, "name": name}
        return kind(self.num_heads, self.attention_dropout, **given)

    def _residual(self, name: str) -> Residual:
        sizes = (self.dropout, self.norm, self.epsilon)
        return Residual(*sizes, dtype=self.dtype_policy, name=name)

    def _fed(
        self, inputs: Any, training: bool | None, seed: Any = None, adapter: Any = None
    ) -> Any:
        return self.feed_forward_residual(
            inputs,
            sublayer=lambda x: self.feed_forward(x, training=training, adapter=adapter),
            training=training,
            seed=seed,
            **_joined(adapter, FEED_FORWARD, training),
        )


@keras.saving.register_keras_serializable("kbert")
class EncoderBlock(TransformerBlock):
    """Self-attention and feed-forward network, each within a residual connection.

    Source: Vaswani et al. 2017, section 3.1.

    Args:
        num_heads: N; must divide the hidden width.
        intermediate_dim: I, width of the feed-forward network.
        dropout: rate of the dropout on the output of each sublayer.
        attention_dropout: rate of the dropout on the attention probabilities.
        activation: of the feed-forward network.
        norm: "post" (BERT) or "pre".
        epsilon: of the LayerNorms.
        kernel_initializer: Keras initializer of the matrices.
    """

    def _make_attentions(self) -> None:
        self.attention = self._attention(SelfAttention, "attention")
        self.attention_residual = self._residual("attention_residual")

    def build(self, input_shape: Any) -> None:
        """Creates the weights for an input (B, T, D)."""
        self.attention.build(input_shape)
        self.attention_residual.build(input_shape)
        self.feed_forward.build(input_shape)
        self.feed_forward_residual.build(input_shape)
        self.built = True

    def draw_seeds(self) -> tuple[Any, Any, Any]:
        """Draws the dropout seeds of one call, for blocks that are recomputed."""
        return (
            self.attention.dropout_layer.draw(),
            self.attention_residual.dropout_layer.draw(),
            self.feed_forward_residual.dropout_layer.draw(),
        )

    def call(
        self,
        inputs: Any,
        attention_mask: Any = None,
        training: bool | None = None,
        seeds: Any = None,
        mask: Any = None,
        adapter: Any = None,
    ) -> Any:
        """Encodes to an array like `inputs`.

        Args:
            inputs: (B, T, D), or (R, D) for the real tokens of a batch.
            attention_mask: bool, broadcastable to (B, N, T, T), True = may attend; or None; or the
                `UnpaddedTokens` with the positions of inputs (R, D) in the batch.
            training: whether dropout is on.
            seeds: seeds from `draw_seeds`, or None to draw them now.
            mask: bool (B, T), True for a real token, or None; Keras passes the implicit mask of
                the inputs, for example of `Embedding(mask_zero=True)`.
            adapter: a `BlockAdapter` for a block with norm "post", or None.
        """
        attention_mask = with_padding(attention_mask, mask)
        attention_seed, attended_seed, fed_seed = (None, None, None) if seeds is None else seeds
        attended = self.attention_residual(
            inputs,
            sublayer=lambda x: self.attention(
                x,
                attention_mask=attention_mask,
                training=training,
                seed=attention_seed,
                adapter=adapter,
            ),
            training=training,
            seed=attended_seed,
            **_joined(adapter, ATTENTION, training),
        )
        return self._fed(attended, training, fed_seed, adapter)

    def scores(self, inputs: Any, attention_mask: Any = None, adapter: Any = None) -> Any:
        """Returns the attention probabilities (B, N, T, T), without dropout.

        Args:
            inputs: (B, T, D).
            attention_mask: bool, broadcastable to (B, N, T, T), True = may attend; or None.
            adapter: a `BlockAdapter` for a block with norm "post", or None.
        """
        if self.norm == "pre":
            inputs = self.attention_residual.layer_norm(inputs)
        return self.attention.scores(inputs, attention_mask, adapter)


def _joined(adapter: Any, sublayer: str, training: bool | None) -> dict[str, Any]:
    """Returns the argument of a `Residual` by which an adapter stands behind a sublayer."""
    if adapter is None:
        return {}
    return {"joined": lambda x, h, norm: adapter.behind(sublayer, x, h, norm, training)}

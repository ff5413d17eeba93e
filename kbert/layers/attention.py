"""Scaled dot-product attention and multi-head attention (Vaswani et al. 2017, section 3.2).

Shapes: B batch, T query length, S key length, D hidden, N heads, H = D / N head size, M width of
the memory of cross-attention.
"""

import math
from typing import Any

import keras
from keras import ops

from kbert.layers.linear import Linear
from kbert.layers.masks import UnpaddedTokens, additive_mask, any_visible, with_padding
from kbert.layers.residual import Dropout, ShapeKeepingLayer


def attention_probabilities(query: Any, key: Any, mask: Any = None) -> Any:
    """softmax(Q K^T / sqrt(H)) over the visible keys, (B, N, T, S), for a bool mask or None.

    A fully masked row holds some finite numbers: see `dot_product_attention`.
    """
    # Scaling the query is one pass over (T, H) where scaling the scores is one over (T, S).
    scale = 1.0 / math.sqrt(query.shape[-1])
    scores = ops.matmul(query * ops.cast(scale, query.dtype), ops.transpose(key, (0, 1, 3, 2)))
    if scores.shape[-1] == 1:
        # A single key has all of it. Keras' softmax would say so too, with a warning each time; a
        # product with 0 leaves gradients that are 0, not missing.
        return scores * 0.0 + 1.0
    if mask is not None:
        scores = scores + additive_mask(mask, keras.backend.standardize_dtype(scores.dtype))
    return ops.softmax(scores, axis=-1)


def dot_product_attention(probabilities: Any, value: Any, mask: Any = None) -> Any:
    """Averages the values with the probabilities as weights, (B, N, T, H); 0 in a fully masked row.

    The mask is the one that the probabilities were made with.
    """
    context = ops.matmul(probabilities, value)
    if mask is not None:
        context = context * any_visible(mask, keras.backend.standardize_dtype(context.dtype))
    return context


class MultiHeadAttention(ShapeKeepingLayer):
    """Base class of self-attention and cross-attention, whose arguments it has: heads and dropout.

    Raises:
        ValueError: `num_heads` is not positive or, at build, does not divide D.
    """

    def __init__(
        self,
        num_heads: int,
        dropout: float = 0.0,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if num_heads < 1:
            raise ValueError(f"`num_heads` must be at least 1. Received: num_heads={num_heads}")
        self.num_heads, self.dropout, self.use_bias = num_heads, dropout, use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.dropout_layer = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def _projection(self, units: int, name: str) -> Linear:
        start = keras.initializers.serialize(self.kernel_initializer)
        return Linear(units, None, self.use_bias, start, dtype=self.dtype_policy, name=name)

    def _build_output(self, hidden_dim: int) -> None:
        self.dropout_layer.build()
        if hidden_dim % self.num_heads:
            raise ValueError(
                f"`num_heads` must divide the hidden width. Received: num_heads={self.num_heads}, "
                f"hidden width {hidden_dim}"
            )
        self.output_linear = self._projection(hidden_dim, "output")
        self.output_linear.build((None, None, hidden_dim))

    def split_heads(self, projected: Any, parts: int, rows: Any = None) -> tuple[Any, ...]:
        """Splits `projected` (B, S, parts D) into `parts` (B, N, S, H); `rows`: B, S or None."""
        batch, length = ops.shape(projected)[:2] if rows is None else rows
        head_dim = projected.shape[-1] // (parts * self.num_heads)
        batch = -1 if isinstance(length, int) else batch
        split = ops.reshape(projected, (batch, length, parts, self.num_heads, head_dim))
        split = ops.transpose(split, (2, 0, 3, 1, 4))  # (parts, B, N, S, H)
        return tuple(ops.unstack(split, parts, axis=0))

    def attend(
        self, query: Any, key: Any, value: Any, mask: Any, training: Any, seed: Any, adapter: Any
    ) -> Any:
        """Attends from `query` (B, N, T, H) to `key` and `value` (B, N, S, H), to (B, T, D).

        Args:
            mask: bool, broadcastable to (B, N, T, S), or None.
            training: whether dropout is on.
            seed: drawn seed of the dropout, or None.
            adapter: a `BlockAdapter`, which may add to the output; or None.
        """
        context = self._context(query, key, value, mask, training, seed)
        return self._output(self._joined(context, *ops.shape(context)[:2]), adapter)

    def _output(self, context: Any, adapter: Any) -> Any:
        more = None if adapter is None else adapter.added("attention_output", context)
        return self.output_linear(context, added=more)

    def _context(
        self, query: Any, key: Any, value: Any, mask: Any, training: bool | None, seed: Any
    ) -> Any:
        """Returns the attended values of all heads, (B, T, N, H)."""
        probabilities = attention_probabilities(query, key, mask)
        probabilities = self.dropout_layer(probabilities, training=training, seed=seed)
        return ops.transpose(dot_product_attention(probabilities, value, mask), (0, 2, 1, 3))

    def _joined(self, context: Any, *rows: Any) -> Any:
        return ops.reshape(context, (*rows, context.shape[-1] * self.num_heads))

    def visible_probabilities(self, query: Any, key: Any, mask: Any) -> Any:
        """Returns the probabilities (B, N, T, S) of `key` (B, N, S, H) for `query` (B, N, T, H).

        Args:
            mask: bool, broadcastable to (B, N, T, S), True = may attend; or None. A fully masked
                row is zero.
        """
        probabilities = attention_probabilities(query, key, mask)
        if mask is not None:
            dtype = keras.backend.standardize_dtype(probabilities.dtype)
            probabilities = probabilities * any_visible(mask, dtype)
        return probabilities


@keras.saving.register_keras_serializable("kbert")
class SelfAttention(MultiHeadAttention):
    """Multi-head attention of a sequence to itself; query, key and value come from one product.

    Args:
        num_heads: N; must divide the hidden width D of the queries.
        dropout: rate of the dropout on the attention probabilities.
        use_bias: whether the projections have biases.
        kernel_initializer: Keras initializer of the projections.
    """

    def build(self, input_shape: Any) -> None:
        """Creates the projections (D, 3D) and (D, D) for an input (B, T, D)."""
        hidden_dim = input_shape[-1]
        self._build_output(hidden_dim)
        self.qkv = self._projection(3 * hidden_dim, "qkv")
        self.qkv.build(input_shape)
        self.built = True

    def call(
        self,
        inputs: Any,
        attention_mask: Any = None,
        training: bool | None = None,
        seed: Any = None,
        mask: Any = None,
        inputs_mask: Any = None,
        adapter: Any = None,
    ) -> Any:
        """Attends within the sequence, to an array like `inputs`.

        Args:
            inputs: (B, T, D), or (R, D) for the real tokens of a batch.
            attention_mask: bool, broadcastable to (B, N, T, T), True = may attend; or None; or the
                `UnpaddedTokens` with the positions of inputs (R, D) in the batch.
            training: whether dropout is on.
            seed: drawn seed of the dropout, or None.
            mask: bool (B, T), True for a real token, or None; Keras passes the implicit mask of
                the inputs, for example of `Embedding(mask_zero=True)`.
            inputs_mask: the same; Keras uses this name where other arguments are tensors too.
            adapter: a `BlockAdapter`, which may add to the products; or None.
        """
        if isinstance(attention_mask, UnpaddedTokens):
            return self._in_groups(inputs, attention_mask, training, seed, adapter)
        attention_mask = with_padding(attention_mask, mask, inputs_mask)
        query, key, value = self.split_heads(self._projected(inputs, adapter), 3)
        return self.attend(query, key, value, attention_mask, training, seed, adapter)

    def _projected(self, inputs: Any, adapter: Any) -> Any:
        return self.qkv(inputs, added=None if adapter is None else adapter.added("qkv", inputs))

    def _in_groups(
        self, inputs: Any, tokens: UnpaddedTokens, training: Any, seed: Any, adapter: Any
    ) -> Any:
        """Computes the attention of the real tokens (R, D) within their rows."""
        if training and seed is None:
            seed = self.dropout_layer.draw()
        contexts: list[Any] = []
        grids = tokens.in_groups(self._projected(inputs, adapter))
        for group, grid in zip(tokens.groups, grids):
            query, key, value = self.split_heads(grid, 3, ops.shape(group.slots))
            context = self._context(query, key, value, group.mask, training, seed)
            contexts.append(self._joined(context, -1))
            seed = None if seed is None else seed + 1  # else all groups would drop the same units
        return self._output(tokens.from_groups(tuple(contexts)), adapter)

    def scores(self, inputs: Any, attention_mask: Any = None, adapter: Any = None) -> Any:
        """Returns the attention probabilities (B, N, T, T), without dropout.

        Args:
            inputs: (B, T, D).
            attention_mask: bool, broadcastable to (B, N, T, T), True = may attend; or None.
            adapter: a `BlockAdapter`, which may add to the products; or None.
        """
        query, key, _ = self.split_heads(self._projected(inputs, adapter), 3)
        return self.visible_probabilities(query, key, attention_mask)


@keras.saving.register_keras_serializable("kbert")
class CrossAttention(MultiHeadAttention):
    """Multi-head attention of a sequence to another one, which may have another width.

    Args:
        num_heads: N; must divide the hidden width D of the queries.
        dropout: rate of the dropout on the attention probabilities.
        use_bias: whether the projections have biases.
        kernel_initializer: Keras initializer of the projections.
    """

    def build(self, inputs_shape: Any, memory_shape: Any) -> None:
        """Creates the projections (D, D), (M, 2D) and (D, D) for (B, T, D) and (B, S, M)."""
        hidden_dim = inputs_shape[-1]
        self._build_output(hidden_dim)
        self.query = self._projection(hidden_dim, "query")
        self.query.build(inputs_shape)
        self.key_value = self._projection(2 * hidden_dim, "key_value")
        self.key_value.build(memory_shape)
        self.built = True

    def call(
        self,
        inputs: Any,
        memory: Any,
        attention_mask: Any = None,
        training: bool | None = None,
        seed: Any = None,
        memory_mask: Any = None,
    ) -> Any:
        """Attends from the sequence to the memory, to an array (B, T, D).

        Args:
            inputs: (B, T, D).
            memory: (B, S, M).
            attention_mask: bool, broadcastable to (B, N, T, S), True = may attend; or None.
            training: whether dropout is on.
            seed: drawn seed of the dropout, or None.
            memory_mask: bool (B, S), True for a real token, or None; Keras passes the implicit
                mask of the memory.
        """
        attention_mask = with_padding(attention_mask, memory_mask)
        key, value = self.keys_values(memory)
        (query,) = self.split_heads(self.query(inputs), 1)
        return self.attend(query, key, value, attention_mask, training, seed, None)

    def keys_values(self, memory: Any, mask: Any = None) -> tuple[Any, Any]:
        """Computes keys and values (B, N, S, H) of `memory` (B, S, M), for the steps of a decoder.

        Args:
            memory: (B, S, M).
            mask: bool (B, 1, 1, S), True = may attend; the values of a row without any are zero.
        """
        key, value = self.split_heads(self.key_value(memory), 2)
        if mask is not None:
            value = value * any_visible(mask, keras.backend.standardize_dtype(value.dtype))
        return key, value

    def scores(self, inputs: Any, memory: Any, attention_mask: Any = None) -> Any:
        """Returns the attention probabilities (B, N, T, S), without dropout.

        Args:
            inputs: (B, T, D).
            memory: (B, S, M).
            attention_mask: bool, broadcastable to (B, N, T, S), True = may attend; or None.
        """
        (query,) = self.split_heads(self.query(inputs), 1)
        key, _ = self.split_heads(self.key_value(memory), 2)
        return self.visible_probabilities(query, key, attention_mask)

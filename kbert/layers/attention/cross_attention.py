"""Multi-head attention of one sequence to another (Vaswani et al. 2017, section 3.2.3).

Shapes: B batch, T query length, S key length, D hidden, M width of the memory, N heads.
"""

from typing import Any

import keras

from kbert.layers.attention.attention import MultiHeadAttention
from kbert.layers.attention.masks import with_padding


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
        """Attends from the sequence to the memory.

        Args:
            inputs: (B, T, D).
            memory: (B, S, M).
            attention_mask: bool, broadcastable to (B, N, T, S), True = may attend; or None.
            training: whether dropout is on.
            seed: drawn seed of the dropout, or None.
            memory_mask: bool (B, S), True for a real token, or None; Keras passes the implicit
                mask of the memory.

        Returns:
            (B, T, D).
        """
        attention_mask = with_padding(attention_mask, memory_mask)
        key, value = self.keys_values(memory)
        (query,) = self.split_heads(self.query(inputs), 1)
        return self.attend(query, key, value, attention_mask, training, seed)

    def keys_values(self, memory: Any) -> tuple[Any, Any]:
        """Computes keys and values (B, N, S, H) of a memory, for many calls of `attend_to`.

        Args:
            memory: (B, S, M).
        """
        key, value = self.split_heads(self.key_value(memory), 2)
        return key, value

    def attend_to(self, inputs: Any, keys_values: tuple[Any, Any], attention_mask: Any) -> Any:
        """Attends without dropout to keys and values from `keys_values`.

        Args:
            inputs: (B, T, D).
            keys_values: keys and values (B, N, S, H) of the memory.
            attention_mask: bool, broadcastable to (B, N, T, S), True = may attend; or None.
        """
        (query,) = self.split_heads(self.query(inputs), 1)
        return self.attend(query, *keys_values, attention_mask, None, None)

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

    def compute_output_shape(
        self, inputs_shape: Any, memory_shape: Any = None, **kwargs: Any
    ) -> Any:
        return inputs_shape

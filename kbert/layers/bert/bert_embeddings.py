"""BERT's input: the sum of token, position and segment embeddings, with LayerNorm and dropout."""

from typing import Any

import keras
from keras import ops

from kbert.layers.core.embeddings import LearnedPositions, TokenEmbedding
from kbert.layers.core.residual import Dropout, LayerNorm


@keras.saving.register_keras_serializable("kbert")
class BertEmbeddings(keras.layers.Layer):
    """LN(token + position + segment), then dropout.

    Source: Devlin et al. 2019, section 3 and figure 2.

    Args:
        vocabulary_size: V.
        hidden_dim: D.
        max_sequence_length: P, the number of positions.
        num_segments: the number of segment types.
        dropout: rate of the dropout at the end.
        epsilon: of the LayerNorm.
        initializer: Keras initializer of the three tables.
    """

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        max_sequence_length: int = 512,
        num_segments: int = 2,
        dropout: float = 0.1,
        epsilon: float = 1e-12,
        initializer: Any = "uniform",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim
        self.max_sequence_length = max_sequence_length
        self.num_segments = num_segments
        self.dropout = dropout
        self.epsilon = epsilon
        self.initializer = keras.initializers.get(initializer)
        self.token_embedding = TokenEmbedding(
            vocabulary_size, hidden_dim, **self._table("token_embedding")
        )
        self.position_embedding = LearnedPositions(
            max_sequence_length, hidden_dim, **self._table("position_embedding")
        )
        self.segment_embedding = TokenEmbedding(
            num_segments, hidden_dim, **self._table("segment_embedding")
        )
        self.layer_norm = LayerNorm(epsilon, dtype=self.dtype_policy, name="layer_norm")
        self.dropout_layer = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def _table(self, name: str) -> dict[str, Any]:
        return {
            "initializer": keras.initializers.serialize(self.initializer),
            "dtype": self.dtype_policy,
            "name": name,
        }

    def build(self, input_shape: Any = None) -> None:
        """Creates the three tables and the LayerNorm."""
        self.token_embedding.build()
        self.position_embedding.build()
        self.segment_embedding.build()
        self.layer_norm.build((None, None, self.hidden_dim))
        self.dropout_layer.build()
        self.built = True

    def call(
        self,
        token_ids: Any,
        segment_ids: Any = None,
        positions: Any = None,
        training: bool | None = None,
    ) -> Any:
        """Embeds a batch, or tokens one by one.

        Args:
            token_ids: int (B, T), or of any shape if `positions` are given.
            segment_ids: int, like `token_ids`, or None if all are 0.
            positions: int, like `token_ids`, below `max_sequence_length`; None counts along T.
            training: whether dropout is on.

        Returns:
            (B, T, D), or (..., D) for token_ids (...).
        """
        places = self.position_embedding
        embedded = self.token_embedding(token_ids)
        embedded = embedded + (places(token_ids) if positions is None else places.at(positions))
        if segment_ids is None:
            embedded = embedded + self.segment_embedding.embeddings[0]
        else:
            embedded = embedded + self._segments(segment_ids)
        return self.dropout_layer(self.layer_norm(embedded), training=training)

    def _segments(self, segment_ids: Any) -> Any:
        # A product with one-hot rows: the gradient of a look-up in a table of two rows would add
        # all positions into them one after the other.
        one_hot = ops.one_hot(segment_ids, self.num_segments, dtype=self.compute_dtype)
        rows = ops.matmul(
            ops.reshape(one_hot, (-1, self.num_segments)), self.segment_embedding.embeddings
        )
        return ops.reshape(rows, (*ops.shape(segment_ids), self.hidden_dim))

    def compute_output_shape(self, input_shape: Any, *args: Any, **kwargs: Any) -> Any:
        """(B, T) -> (B, T, D)."""
        return (*input_shape, self.hidden_dim)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "hidden_dim": self.hidden_dim,
            "max_sequence_length": self.max_sequence_length,
            "num_segments": self.num_segments,
            "dropout": self.dropout,
            "epsilon": self.epsilon,
            "initializer": keras.initializers.serialize(self.initializer),
        }

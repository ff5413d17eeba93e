"""Tables of vectors: one per token, and one per position, learned (BERT) or sinusoidal."""

from typing import Any

import keras
import numpy as np
from keras import ops

from kbert.layers.residual import ConfiguredLayer, Dropout, LayerNorm


def looked_up(table: Any, rows: Any) -> Any:
    """Returns rows of a table (V, ...) for int (...), each in [0, V).

    With TensorFlow, Keras' `take` maps negative indices first, by five small steps of the graph;
    for a single short text these steps cost more than the look-up.
    """
    if keras.backend.backend() != "tensorflow":
        return ops.take(table, rows, axis=0)
    import tensorflow

    return tensorflow.gather(ops.convert_to_tensor(table), ops.convert_to_tensor(rows))


@keras.saving.register_keras_serializable("kbert")
class TokenEmbedding(ConfiguredLayer):
    """Looks up one vector for each id.

    Args:
        vocabulary_size: V, rows of the table.
        hidden_dim: D, width of the table.
        initializer: Keras initializer of the table.

    Raises:
        ValueError: a size is not positive.
    """

    def __init__(
        self, vocabulary_size: int, hidden_dim: int, initializer: Any = "uniform", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if vocabulary_size < 1 or hidden_dim < 1:
            raise ValueError(
                "`vocabulary_size` and `hidden_dim` must be at least 1. Received: "
                f"vocabulary_size={vocabulary_size}, hidden_dim={hidden_dim}"
            )
        self.vocabulary_size, self.hidden_dim = vocabulary_size, hidden_dim
        self.initializer = keras.initializers.get(initializer)

    def build(self, input_shape: Any = None) -> None:
        """Creates the table (V, D)."""
        shape, start = (self.vocabulary_size, self.hidden_dim), self.initializer
        self.embeddings = self.add_weight(name="embeddings", shape=shape, initializer=start)
        self.built = True

    def call(self, token_ids: Any) -> Any:
        """Maps `token_ids` int (...), which must be in [0, V), to (..., D)."""
        return self.look_up(token_ids)

    def look_up(self, token_ids: Any) -> Any:
        """Returns rows of the table for `token_ids` int (...).

        Overridden where the table is stored in another form.
        """
        return looked_up(self.embeddings, token_ids)

    def logits(self, states: Any) -> Any:
        """Maps `states` (m, D) to their products with all rows of the table, (m, V).

        Overridden as `look_up` is. Source: Press and Wolf 2017, tied embeddings.
        """
        return ops.matmul(states, ops.transpose(ops.cast(self.embeddings, states.dtype)))

    def compute_output_shape(self, input_shape: Any, **kwargs: Any) -> Any:
        """(...) -> (..., D)."""
        return (*input_shape, self.hidden_dim)


class _Positions(ConfiguredLayer):
    """P vectors of width D, of which the first T are read, or those at given positions."""

    def __init__(self, max_sequence_length: int, hidden_dim: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_sequence_length, self.hidden_dim = max_sequence_length, hidden_dim

    def _vectors(self) -> Any:
        """Returns the table (P, D)."""
        raise NotImplementedError(f"{type(self).__name__} must have a table")

    def call(self, inputs: Any) -> Any:
        """Returns the vectors (T, D) of the positions of `inputs` (B, T, ...), of which T is read.

        Raises:
            ValueError: T is known and larger than P.
        """
        length = inputs.shape[1]
        if length is not None and length > self.max_sequence_length:
            raise ValueError(
                "the sequence must not be longer than `max_sequence_length`="
                f"{self.max_sequence_length}. Received: length {length}"
            )
        return self._vectors()[: ops.shape(inputs)[1]]

    def at(self, position: Any) -> Any:
        """Returns the vectors (..., D) of `position` int (...)."""
        # Outside of a call nothing casts the weights.
        return ops.cast(looked_up(self._vectors(), position), self.compute_dtype)

    def compute_output_shape(self, input_shape: Any, **kwargs: Any) -> Any:
        """(B, T, ...) -> (T, D)."""
        return (input_shape[1], self.hidden_dim)


@keras.saving.register_keras_serializable("kbert")
class LearnedPositions(_Positions):
    """One trained vector per position.

    Source: Gehring et al. 2017, section 3.1; Devlin et al. 2019.

    Args:
        max_sequence_length: P, the number of positions.
        hidden_dim: D, width of the table.
        initializer: Keras initializer of the table.
        first: F, the row of the first position; those before it are kept, and never read.
    """

    def __init__(
        self,
        max_sequence_length: int,
        hidden_dim: int,
        initializer: Any = "uniform",
        first: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(max_sequence_length, hidden_dim, **kwargs)
        self.initializer = keras.initializers.get(initializer)
        self.first = first

    def build(self, input_shape: Any = None) -> None:
        """Creates the table (F + P, D)."""
        rows, start = self.first + self.max_sequence_length, self.initializer
        shape = (rows, self.hidden_dim)
        self.embeddings = self.add_weight(name="embeddings", shape=shape, initializer=start)
        self.built = True

    def _vectors(self) -> Any:
        return self.embeddings[self.first :] if self.first else self.embeddings


@keras.saving.register_keras_serializable("kbert")
class SinusoidalPositions(_Positions):
    """Fixed sinusoids: column 2i is sin(p / 10000^(2i/D)), column 2i + 1 the cosine.

    Source: Vaswani et al. 2017, section 3.5.

    Args:
        max_sequence_length: P, the number of positions.
        hidden_dim: D, an even width.
        interleaved: True as in the paper; False puts all sines in the first half and all cosines
            in the second, as Marian does.

    Raises:
        ValueError: `hidden_dim` is odd.
    """

    def __init__(
        self, max_sequence_length: int, hidden_dim: int, interleaved: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(max_sequence_length, hidden_dim, **kwargs)
        if hidden_dim % 2:
            raise ValueError(f"`hidden_dim` must be even. Received: hidden_dim={hidden_dim}")
        self.interleaved = interleaved
        self.table = sinusoidal_table(max_sequence_length, hidden_dim, interleaved)
        self.built = True

    def _vectors(self) -> Any:
        return ops.convert_to_tensor(self.table, dtype=self.compute_dtype)


def sinusoidal_table(length: int, hidden_dim: int, interleaved: bool = True) -> np.ndarray:
    """Returns the table of `SinusoidalPositions` as a float32 array (length, hidden_dim)."""
    frequencies = 10000.0 ** (-np.arange(0, hidden_dim, 2) / hidden_dim)  # (D/2,)
    angles = np.arange(length)[:, None] * frequencies  # (P, D/2)
    waves = (np.sin(angles), np.cos(angles))
    if interleaved:
        return np.stack(waves, axis=-1).reshape(length, hidden_dim).astype("float32")
    return np.concatenate(waves, axis=-1).astype("float32")


@keras.saving.register_keras_serializable("kbert")
class BertEmbeddings(ConfiguredLayer):
    """LN(token + position + segment), then dropout.

    Source: Devlin et al. 2019, section 3 and figure 2.

    Args:
        vocabulary_size: V.
        hidden_dim: D.
        max_sequence_length: P, the number of positions.
        num_segments: the number of segment types; 0 for none, and segment ids are not read.
        dropout: rate of the dropout at the end.
        epsilon: of the LayerNorm.
        initializer: Keras initializer of the tables.
        first_position: the row of the first position in its table, see `LearnedPositions`.
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
        first_position: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vocabulary_size, self.hidden_dim = vocabulary_size, hidden_dim
        self.max_sequence_length, self.num_segments = max_sequence_length, num_segments
        self.dropout, self.epsilon = dropout, epsilon
        self.initializer, self.first_position = keras.initializers.get(initializer), first_position
        start = keras.initializers.serialize(self.initializer)
        sizes = {"hidden_dim": hidden_dim, "initializer": start, "dtype": self.dtype_policy}
        self.token_embedding = TokenEmbedding(vocabulary_size, **sizes, name="token_embedding")
        self.position_embedding = LearnedPositions(
            max_sequence_length, **sizes, first=first_position, name="position_embedding"
        )
        if num_segments:
            self.segment_embedding = TokenEmbedding(num_segments, **sizes, name="segment_embedding")
        self.layer_norm = LayerNorm(epsilon, dtype=self.dtype_policy, name="layer_norm")
        self.dropout_layer = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, input_shape: Any = None) -> None:
        """Creates the tables and the LayerNorm."""
        self.token_embedding.build()
        self.position_embedding.build()
        if self.num_segments:
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
            segment_ids: int, like `token_ids`, or None if all are 0; not read of one segment.
            positions: int, like `token_ids`, below `max_sequence_length`; None counts along T.
            training: whether dropout is on.

        Returns:
            (B, T, D), or (..., D) for token_ids (...).
        """
        places = self.position_embedding
        embedded = self.token_embedding(token_ids)
        embedded = embedded + (places(token_ids) if positions is None else places.at(positions))
        if self.num_segments and (segment_ids is None or self.num_segments == 1):
            embedded = embedded + self.segment_embedding.embeddings[0]
        elif self.num_segments:
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
        """(B, T) -> (B, T, D); without a shape, as from `build`, of any batch."""
        return (*(input_shape or (None, None)), self.hidden_dim)

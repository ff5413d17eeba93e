"""Tables of vectors: one per token, and one per position, learned (BERT) or sinusoidal."""

from typing import Any

import keras
import numpy as np
from keras import ops


@keras.saving.register_keras_serializable("kbert")
class TokenEmbedding(keras.layers.Layer):
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
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim
        self.initializer = keras.initializers.get(initializer)

    def build(self, input_shape: Any = None) -> None:
        """Creates the table (V, D)."""
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.vocabulary_size, self.hidden_dim),
            initializer=self.initializer,
        )
        self.built = True

    def call(self, token_ids: Any) -> Any:
        """Maps int (...) to (..., D); an id must be in [0, V).

        Args:
            token_ids: int (...).
        """
        return self.look_up(token_ids)

    def look_up(self, token_ids: Any) -> Any:
        """Returns rows of the table; overridden where the table is stored in another form.

        Args:
            token_ids: int (...).
        """
        return ops.take(self.embeddings, token_ids, axis=0)

    def compute_output_shape(self, input_shape: Any, **kwargs: Any) -> Any:
        """(...) -> (..., D)."""
        return (*input_shape, self.hidden_dim)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "hidden_dim": self.hidden_dim,
            "initializer": keras.initializers.serialize(self.initializer),
        }


class _Positions(keras.layers.Layer):
    """P vectors of width D, of which the first T are read, or those at given positions."""

    def __init__(self, max_sequence_length: int, hidden_dim: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_sequence_length = max_sequence_length
        self.hidden_dim = hidden_dim

    def _vectors(self) -> Any:
        """Returns the table (P, D)."""
        raise NotImplementedError(f"{type(self).__name__} must have a table")

    def call(self, inputs: Any) -> Any:
        """Returns the vectors of the positions of `inputs`.

        Args:
            inputs: anything of shape (B, T, ...); only T is read.

        Returns:
            (T, D).

        Raises:
            ValueError: T is known and larger than P.
        """
        static_length = inputs.shape[1]
        if static_length is not None and static_length > self.max_sequence_length:
            raise ValueError(
                "the sequence must not be longer than `max_sequence_length`="
                f"{self.max_sequence_length}. Received: length {static_length}"
            )
        return self._vectors()[: ops.shape(inputs)[1]]

    def at(self, position: Any) -> Any:
        """Returns the vectors (..., D) of positions.

        Args:
            position: int (...).
        """
        return ops.take(self._vectors(), position, axis=0)

    def compute_output_shape(self, input_shape: Any, **kwargs: Any) -> Any:
        """(B, T, ...) -> (T, D)."""
        return (input_shape[1], self.hidden_dim)

    def get_config(self) -> dict[str, Any]:
        sizes = {"max_sequence_length": self.max_sequence_length, "hidden_dim": self.hidden_dim}
        return {**super().get_config(), **sizes}


@keras.saving.register_keras_serializable("kbert")
class LearnedPositions(_Positions):
    """One trained vector per position.

    Source: Gehring et al. 2017, section 3.1; Devlin et al. 2019.

    Args:
        max_sequence_length: P, rows of the table.
        hidden_dim: D, width of the table.
        initializer: Keras initializer of the table.
    """

    def __init__(
        self, max_sequence_length: int, hidden_dim: int, initializer: Any = "uniform", **kwargs: Any
    ) -> None:
        super().__init__(max_sequence_length, hidden_dim, **kwargs)
        self.initializer = keras.initializers.get(initializer)

    def build(self, input_shape: Any = None) -> None:
        """Creates the table (P, D)."""
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.max_sequence_length, self.hidden_dim),
            initializer=self.initializer,
        )
        self.built = True

    def _vectors(self) -> Any:
        return self.embeddings

    def get_config(self) -> dict[str, Any]:
        initializer = keras.initializers.serialize(self.initializer)
        return {**super().get_config(), "initializer": initializer}


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

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "interleaved": self.interleaved}


def sinusoidal_table(length: int, hidden_dim: int, interleaved: bool = True) -> np.ndarray:
    """Returns the table of `SinusoidalPositions` as a float32 array (length, hidden_dim)."""
    frequencies = 10000.0 ** (-np.arange(0, hidden_dim, 2) / hidden_dim)  # (D/2,)
    angles = np.arange(length)[:, None] * frequencies  # (P, D/2)
    waves = (np.sin(angles), np.cos(angles))
    if interleaved:
        return np.stack(waves, axis=-1).reshape(length, hidden_dim).astype("float32")
    return np.concatenate(waves, axis=-1).astype("float32")

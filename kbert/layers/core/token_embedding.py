"""Token embeddings: a table with one vector per token."""

from typing import Any

import keras
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

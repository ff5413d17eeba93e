"""Masked language model head: a transform, and the transposed token embeddings."""

from typing import Any

import keras
from keras import ops

from kbert.layers.linear import Bias, normal_linear
from kbert.layers.residual import ConfiguredLayer, LayerNorm


@keras.saving.register_keras_serializable("kbert")
class MaskedLanguageHead(ConfiguredLayer):
    """LN(activation(h W + b)) E^T + c, with the tied token embeddings E and a separate bias c.

    The transform maps states to the width of E, which in ALBERT is another.

    Source: google-research/bert, `run_pretraining.py`, `get_masked_lm_output`.

    Args:
        vocabulary_size: V, rows of the table.
        activation: name of the transform's activation.
        epsilon: of the LayerNorm.
        initializer_range: standard deviation of the initializer.
    """

    def __init__(
        self,
        vocabulary_size: int,
        activation: str = "gelu",
        epsilon: float = 1e-12,
        initializer_range: float = 0.02,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vocabulary_size, self.activation = vocabulary_size, activation
        self.epsilon, self.initializer_range = epsilon, initializer_range

    def build(self, states_shape: Any, table_shape: Any = None) -> None:
        """Creates the weights for states (..., D) and a table (V, E); E is D if it is not given."""
        width, dtype = (table_shape or states_shape)[-1], self.dtype_policy
        self.transform = normal_linear(
            width, self.initializer_range, self.activation, dtype=dtype, name="transform"
        )
        self.layer_norm = LayerNorm(self.epsilon, dtype=dtype, name="layer_norm")
        self.output_bias = Bias(self.vocabulary_size, dtype=dtype, name="output")
        self.transform.build((None, states_shape[-1]))
        self.layer_norm.build((None, width))
        self.output_bias.build()
        self.built = True

    def call(self, states: Any, table: Any, training: bool | None = None) -> Any:
        """Computes logits (..., V) of the vocabulary: float32, or float64 as the layer computes.

        Args:
            states: (..., D).
            table: (V, E), the token embeddings.
            training: whether this is a training step.

        Raises:
            ValueError: the layer was built for a table of another width.
        """
        if table.shape[-1] != self.transform.units:
            raise ValueError(
                f"`table` must have the width that the layer was built for, {self.transform.units}"
                f". Received: shape {tuple(table.shape)}"
            )
        flat = ops.reshape(states, (-1, states.shape[-1]))
        flat = self.layer_norm(self.transform(flat, training=training))
        logits = ops.matmul(flat, ops.transpose(ops.cast(table, flat.dtype)))  # (rows, V)
        wide = "float64" if self.compute_dtype == "float64" else "float32"
        logits = ops.cast(self.output_bias(logits), wide)
        return ops.reshape(logits, (*ops.shape(states)[:-1], self.vocabulary_size))

    def compute_output_shape(self, states_shape: Any, table_shape: Any = None) -> Any:
        """(..., D) -> (..., V)."""
        return (*states_shape[:-1], self.vocabulary_size)

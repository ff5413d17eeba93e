"""Masked language model head: a transform, and the transposed token embeddings."""

from typing import Any

import keras
from keras import ops

from kbert.layers.linear import Bias, normal_linear
from kbert.layers.residual import ConfiguredLayer, LayerNorm


@keras.saving.register_keras_serializable("kbert")
class MaskedLanguageHead(ConfiguredLayer):
    """LN(activation(h W + b)) E^T + c, with the tied token embeddings E and a separate bias c.

    The transform maps states to the width of E, which in ALBERT is another. A head that is not tied
    has a matrix of its own in the place of E^T, and its bias.

    Source: google-research/bert, `run_pretraining.py`, `get_masked_lm_output`.

    Args:
        vocabulary_size: V, rows of the table.
        activation: name of the transform's activation.
        epsilon: of the LayerNorm.
        initializer_range: standard deviation of the initializer.
        tied: whether E is the table that is passed to a call, and no weight of this layer.
    """

    def __init__(
        self,
        vocabulary_size: int,
        activation: str = "gelu",
        epsilon: float = 1e-12,
        initializer_range: float = 0.02,
        tied: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vocabulary_size, self.activation = vocabulary_size, activation
        self.epsilon, self.initializer_range, self.tied = epsilon, initializer_range, tied

    def build(self, states_shape: Any, table_shape: Any = None) -> None:
        """Creates the weights for states (..., D) and a table (V, E); E is D if it is not given."""
        width, dtype = (table_shape or states_shape)[-1], self.dtype_policy
        self.transform = normal_linear(
            width, self.initializer_range, self.activation, dtype=dtype, name="transform"
        )
        self.layer_norm = LayerNorm(self.epsilon, dtype=dtype, name="layer_norm")
        if self.tied:
            self.output_bias = Bias(self.vocabulary_size, dtype=dtype, name="output")
        else:
            self.decoder = normal_linear(
                self.vocabulary_size, self.initializer_range, dtype=dtype, name="decoder"
            )
        self.transform.build((None, states_shape[-1]))
        self.layer_norm.build((None, width))
        if self.tied:
            self.output_bias.build()
        else:
            self.decoder.build((None, width))
        self.built = True

    def call(self, states: Any, table: Any, training: bool | None = None) -> Any:
        """Computes logits (..., V) of the vocabulary: float32, or float64 as the layer computes.

        Args:
            states: (..., D).
            table: (V, E), the token embeddings; of a head that is not tied its width alone counts.
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
        if self.tied:
            logits = ops.matmul(flat, ops.transpose(ops.cast(table, flat.dtype)))  # (rows, V)
            logits = self.output_bias(logits)
        else:
            logits = self.decoder(flat)
        wide = "float64" if self.compute_dtype == "float64" else "float32"
        logits = ops.cast(logits, wide)
        return ops.reshape(logits, (*ops.shape(states)[:-1], self.vocabulary_size))

    def compute_output_shape(self, states_shape: Any, table_shape: Any = None) -> Any:
        """(..., D) -> (..., V)."""
        return (*states_shape[:-1], self.vocabulary_size)

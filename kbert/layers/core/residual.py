"""Residual connection and layer normalization around a sublayer, in both orders."""

from collections.abc import Callable
from typing import Any

import keras

from kbert.layers.core.dropout import Dropout
from kbert.layers.core.layer_norm import LayerNorm


@keras.saving.register_keras_serializable("kbert")
class Residual(keras.layers.Layer):
    """Wraps a sublayer f with dropout, a residual connection and a LayerNorm.

    Post-norm (Vaswani et al. 2017; BERT): LN(x + dropout(f(x))).
    Pre-norm (Xiong et al. 2020): x + dropout(f(LN(x))).

    Args:
        dropout: rate of the dropout on the sublayer's output.
        norm: "post" or "pre".
        epsilon: of the LayerNorm.

    Raises:
        ValueError: `norm` is neither.
    """

    def __init__(
        self, dropout: float = 0.0, norm: str = "post", epsilon: float = 1e-12, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if norm not in ("post", "pre"):
            raise ValueError(f'`norm` must be "post" or "pre". Received: norm={norm!r}')
        self.dropout = dropout
        self.norm = norm
        self.epsilon = epsilon
        self.supports_masking = True
        self.dropout_layer = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.layer_norm = LayerNorm(epsilon, dtype=self.dtype_policy, name="layer_norm")

    def build(self, input_shape: Any) -> None:
        """Creates the LayerNorm for an input (..., D)."""
        self.dropout_layer.build()
        self.layer_norm.build(input_shape)
        self.built = True

    def call(
        self,
        inputs: Any,
        sublayer: Callable[[Any], Any],
        training: bool | None = None,
        seed: Any = None,
    ) -> Any:
        """Applies the sublayer within its residual connection.

        Args:
            inputs: (..., D).
            sublayer: maps (..., D) to (..., D); passed by keyword.
            training: whether dropout is on.
            seed: drawn seed of the dropout, or None.

        Returns:
            (..., D).
        """
        if self.norm == "pre":
            hidden = sublayer(self.layer_norm(inputs))
            return inputs + self.dropout_layer(hidden, training=training, seed=seed)
        hidden = self.dropout_layer(sublayer(inputs), training=training, seed=seed)
        return self.layer_norm(inputs + hidden)

    def compute_output_shape(self, input_shape: Any, **kwargs: Any) -> Any:
        """The shape of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "dropout": self.dropout,
            "norm": self.norm,
            "epsilon": self.epsilon,
        }

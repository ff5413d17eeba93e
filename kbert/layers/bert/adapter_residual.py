"""A residual connection with an adapter on the sublayer's output."""

from collections.abc import Callable
from typing import Any

import keras

from kbert.layers.bert.adapter import Adapter
from kbert.layers.core.residual import Residual


@keras.saving.register_keras_serializable("kbert")
class AdapterResidual(Residual):
    """LN(x + adapter(dropout(f(x)))), post-norm only.

    Source: Houlsby et al. 2019, figure 2.

    Args:
        adapter_dim: m, the width of the adapter.
        dropout: rate of the dropout on the sublayer's output.
        epsilon: of the LayerNorm.
    """

    def __init__(
        self, adapter_dim: int, dropout: float = 0.0, epsilon: float = 1e-12, **kwargs: Any
    ) -> None:
        super().__init__(dropout, "post", epsilon, **kwargs)
        self.adapter_dim = adapter_dim
        self.adapter = Adapter(adapter_dim, dtype=self.dtype_policy, name="adapter")

    def build(self, input_shape: Any) -> None:
        """Creates LayerNorm and adapter for an input (..., D)."""
        self.adapter.build(input_shape)
        super().build(input_shape)

    def call(
        self,
        inputs: Any,
        sublayer: Callable[[Any], Any],
        training: bool | None = None,
        seed: Any = None,
    ) -> Any:
        """Applies sublayer and adapter within the residual connection.

        Args:
            inputs: (..., D).
            sublayer: maps (..., D) to (..., D); passed by keyword.
            training: whether dropout is on.
            seed: drawn seed of the dropout, or None.
        """
        hidden = self.dropout_layer(sublayer(inputs), training=training, seed=seed)
        return self.layer_norm(inputs + self.adapter(hidden, training=training))

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["norm"]
        return {"adapter_dim": self.adapter_dim, **config}

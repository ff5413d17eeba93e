"""One layer of a Transformer encoder with adapters."""

from typing import Any

import keras

from kbert.layers.bert.adapter_residual import AdapterResidual
from kbert.layers.blocks.encoder_block import EncoderBlock
from kbert.layers.core.residual import Residual


@keras.saving.register_keras_serializable("kbert")
class AdapterEncoderBlock(EncoderBlock):
    """An `EncoderBlock` with an adapter after each of its two sublayers.

    Source: Houlsby et al. 2019, figure 2.

    Args:
        adapter_dim: m, the width of the adapters.
        num_heads: N; must divide the hidden width. The norm is "post".
        intermediate_dim: I, width of the feed-forward network.
        dropout: rate of the dropout on the output of each sublayer.
        attention_dropout: rate of the dropout on the attention probabilities.
        activation: of the feed-forward network.
        epsilon: of the LayerNorms.
        kernel_initializer: Keras initializer of the matrices; the adapters have their own.
    """

    def __init__(
        self,
        adapter_dim: int,
        num_heads: int,
        intermediate_dim: int,
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        activation: str = "gelu",
        epsilon: float = 1e-12,
        kernel_initializer: Any = "glorot_uniform",
        **kwargs: Any,
    ) -> None:
        self.adapter_dim = adapter_dim  # `_residual` reads it
        super().__init__(
            num_heads,
            intermediate_dim,
            dropout,
            attention_dropout,
            activation,
            "post",
            epsilon,
            kernel_initializer,
            **kwargs,
        )

    def _residual(self, name: str) -> Residual:
        return AdapterResidual(
            self.adapter_dim, self.dropout, self.epsilon, dtype=self.dtype_policy, name=name
        )

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["norm"]
        return {"adapter_dim": self.adapter_dim, **config}

"""One layer of a Transformer encoder with adapters."""

from typing import Any

import keras

from kbert.layers.adapter_residual import AdapterResidual
from kbert.layers.encoder_block import EncoderBlock
from kbert.layers.residual import Residual


@keras.saving.register_keras_serializable("kbert")
class AdapterEncoderBlock(EncoderBlock):
    """An `EncoderBlock` with an adapter after each of its two sublayers.

    Source: Houlsby et al. 2019, figure 2.

    Args:
        adapter_dim: m, the width of the adapters.
        num_heads: as in `EncoderBlock`.
        intermediate_dim: as there.
        **kwargs: the further arguments of `EncoderBlock` but `norm`, which is "post".
    """

    def __init__(
        self, adapter_dim: int, num_heads: int, intermediate_dim: int, **kwargs: Any
    ) -> None:
        self.adapter_dim = adapter_dim
        super().__init__(num_heads, intermediate_dim, **{**kwargs, "norm": "post"})

    def _residual(self, name: str) -> Residual:
        return AdapterResidual(
            self.adapter_dim, self.dropout, self.epsilon, dtype=self.dtype_policy, name=name
        )

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["norm"]
        return {**config, "adapter_dim": self.adapter_dim}

"""Residual connection around two sublayers that read the same input."""

from collections.abc import Callable
from typing import Any

import keras

from kbert.layers.core.residual import Residual
from kbert.layers.fused.drop_net import DropNet


@keras.saving.register_keras_serializable("kbert")
class FusedResidual(Residual):
    """Wraps two sublayers f and g with dropout, drop-net, one residual and one LayerNorm.

    Post-norm: LN(x + r1 dropout(f(x)) + r2 dropout(g(x))); pre-norm: x + r1 dropout(f(LN(x))) +
    r2 dropout(g(LN(x))).

    Source: Zhu et al. 2020, equations 2 and 4.

    Args:
        drop_net: rate of the drop-net that draws r1 and r2.
        *args: arguments of `Residual`.
        **kwargs: further arguments of `Residual`.
    """

    def __init__(self, drop_net: float = 1.0, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.drop_net_rate = drop_net
        self.drop_net = DropNet(drop_net, dtype=self.dtype_policy, name="drop_net")

    def build(self, input_shape: Any) -> None:
        """Creates the LayerNorm for an input (..., D)."""
        self.drop_net.build()
        super().build(input_shape)

    def call(
        self,
        inputs: Any,
        sublayer: Callable[[Any], tuple[Any, Any]],
        training: bool | None = None,
        seed: Any = None,
    ) -> Any:
        """Applies both sublayers within one residual connection.

        Args:
            inputs: (..., D).
            sublayer: maps (..., D) to two arrays (..., D); passed by keyword.
            training: whether dropout and drop-net are on.
            seed: not used: such a block is never recomputed.

        Returns:
            (..., D).
        """
        first, second = sublayer(self.layer_norm(inputs) if self.norm == "pre" else inputs)
        weights = self.drop_net(inputs, training=training)
        hidden = weights[0] * self.dropout_layer(first, training=training)
        hidden = hidden + weights[1] * self.dropout_layer(second, training=training)
        return inputs + hidden if self.norm == "pre" else self.layer_norm(inputs + hidden)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "drop_net": self.drop_net_rate}

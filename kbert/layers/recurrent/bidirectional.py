"""Recurrent layers that read a sequence from both ends.

Shapes: B batch, T length, I input width, D units of a direction.
"""

from typing import Any

import keras
from keras import ops

from kbert.layers.recurrent.recurrent import Recurrent
from kbert.layers.residual import ConfiguredLayer, Dropout


@keras.saving.register_keras_serializable("kbert")
class Bidirectional(ConfiguredLayer):
    """A stack of recurrent layers in both directions, each on what both show of the one below.

    Source: Graves and Schmidhuber 2005.

    Args:
        units: D.
        num_layers: layers of two directions each.
        cell: "lstm", "gru" (Cho et al. 2014) or "gru_reset_after" (cuDNN's and PyTorch's).
        dropout: rate of the dropout on the output of each layer.

    Raises:
        ValueError: a size is not positive, or there is no such cell.
    """

    def __init__(
        self,
        units: int,
        num_layers: int = 1,
        cell: str = "lstm",
        dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if num_layers < 1:
            raise ValueError(f"`num_layers` must be at least 1. Received: num_layers={num_layers}")
        self.units, self.num_layers, self.cell, self.dropout = units, num_layers, cell, dropout
        dtype = self.dtype_policy
        self.dropout_layer = Dropout(dropout, dtype=dtype, name="dropout")
        self.directions = [
            [
                Recurrent(units, cell, way == "backward", dtype=dtype, name=f"{way}_{i}")
                for way in ("forward", "backward")
            ]
            for i in range(num_layers)
        ]

    def build(self, input_shape: Any) -> None:
        """Creates the weights for inputs (B, T, I)."""
        self.dropout_layer.build()
        for i, pair in enumerate(self.directions):
            for layer in pair:
                layer.build(input_shape if i == 0 else (*input_shape[:-1], 2 * self.units))
        self.built = True

    def call(self, inputs: Any, padding_mask: Any = None, training: bool | None = None) -> Any:
        """Reads a batch.

        Args:
            inputs: (B, T, I).
            padding_mask: bool (B, T), True for a real token, or None if all are.
            training: whether dropout is on.

        Returns:
            (B, T, 2 D): the outputs of the forward direction, then those of the backward one.
        """
        states = inputs
        for pair in self.directions:
            read = [layer.output(layer(states, mask=padding_mask)) for layer in pair]
            states = self.dropout_layer(ops.concatenate(read, axis=-1), training=training)
        return states

    def compute_output_shape(self, input_shape: Any, *args: Any, **kwargs: Any) -> Any:
        """(B, T, I) -> (B, T, 2 D)."""
        return (*input_shape[:-1], 2 * self.units)

"""Several adapters of one encoder block at once, each for its own rows of a batch."""

from collections.abc import Callable, Sequence
from typing import Any

from keras import ops

from kbert.layers.adapters.block_adapters import BlockAdapter


class RoutedAdapters:
    """Runs K adapters in the place of one, and takes for each token what its own made.

    It holds no weights. Source of adapters of tasks that train together: Stickland and Murray 2019.

    Args:
        adapters: the K adapters of the block.
        chosen: int, of the leading shape of the block's states: the number of a token's adapter.
    """

    def __init__(self, adapters: Sequence[BlockAdapter], chosen: Any) -> None:
        self.adapters, self.chosen = list(adapters), chosen

    def _of_each(self, found: Sequence[Any], chosen: Any) -> Any:
        """Returns the entries that belong to each token, of K arrays (..., D)."""
        result = found[0]
        for number, one in enumerate(found[1:], start=1):
            result = ops.where(ops.equal(chosen, number)[..., None], one, result)
        return result

    def added(self, layer: str, inputs: Any) -> Any:
        """Returns what is added to the product of a dense layer, (rows, units), or None.

        Args:
            layer: "qkv", "attention_output", "intermediate" or "output".
            inputs: what the layer reads, (..., D) or (..., I).
        """
        found = [adapter.added(layer, inputs) for adapter in self.adapters]
        there = [one for one in found if one is not None]
        if not there:
            return None
        every = [ops.zeros_like(there[0]) if one is None else one for one in found]
        return self._of_each(every, ops.reshape(self.chosen, (-1,)))

    def behind(
        self,
        sublayer: str,
        inputs: Any,
        hidden: Any,
        norm: Callable[[Any], Any],
        training: bool | None = None,
    ) -> Any:
        """Returns the output of a sublayer with its residual connection, (..., D).

        Args:
            sublayer: `ATTENTION` or `FEED_FORWARD`.
            inputs: x, what the sublayer read, (..., D).
            hidden: h, what it gave, behind its dropout, (..., D).
            norm: the block's LayerNorm.
            training: whether it trains.
        """
        given = (sublayer, inputs, hidden, norm, training)
        found = [adapter.behind(*given) for adapter in self.adapters]
        return self._of_each(found, self.chosen)

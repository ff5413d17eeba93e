"""Low-rank additions to the product of a dense layer (LoRA).

Source: Hu et al. 2021, section 4.1.
"""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from kbert.layers.adapters.block_adapters import BlockAdapter
from kbert.layers.adapters.configs import TARGETS
from kbert.layers.residual import ConfiguredLayer


@keras.saving.register_keras_serializable("kbert")
class LowRank(ConfiguredLayer):
    """(alpha / r) x A B beside a dense layer's x W + b; of a layer with several parts, of some.

    It starts at 0: A is drawn as He et al. 2015 draw it, B is 0.

    Args:
        units: width of the dense layer's output.
        rank: r.
        alpha: the factor before the product, times r.
        parts: number of equal parts of the output, such as 3 for query, key and value.
        targets: the numbers of the parts that are added to, in their order.

    Raises:
        ValueError: `rank` is not positive, or a target is no part.
    """

    def __init__(
        self,
        units: int,
        rank: int = 8,
        alpha: float = 8.0,
        parts: int = 1,
        targets: Sequence[int] = (0,),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if rank < 1:
            raise ValueError(f"`rank` must be at least 1. Received: rank={rank}")
        if not targets or sorted(set(targets) & set(range(parts))) != list(targets):
            raise ValueError(
                f"`targets` must be rising numbers in [0, {parts}). Received: targets={targets}"
            )
        self.units, self.rank, self.alpha = units, rank, alpha
        self.parts, self.targets = parts, tuple(targets)

    def build(self, input_shape: Any) -> None:
        """Creates A (D, n r) and B (n, r, units / parts) for an input (..., D) and n targets."""
        count = len(self.targets)
        bound = keras.initializers.VarianceScaling(1.0 / 3.0, "fan_in", "uniform")
        self.down = self.add_weight(
            name="down", shape=(input_shape[-1], count * self.rank), initializer=bound
        )
        self.up = self.add_weight(
            name="up", shape=(count, self.rank, self.units // self.parts), initializer="zeros"
        )
        self.built = True

    def call(self, inputs: Any) -> Any:
        """Maps `inputs` (..., D) to what is added to x W + b, (rows, units)."""
        rows = ops.reshape(inputs, (-1, inputs.shape[-1]))
        narrow = ops.matmul(rows, self.down) * (self.alpha / self.rank)
        pieces = ops.split(narrow, len(self.targets), axis=-1)
        products = [ops.matmul(x, self.up[i]) for i, x in enumerate(pieces)]
        added = dict(zip(self.targets, products))
        if self.parts == 1:
            return added[0]
        nothing = ops.zeros_like(added[self.targets[0]])
        return ops.concatenate([added.get(part, nothing) for part in range(self.parts)], axis=-1)

    def merged(self, kernel: Any) -> Any:
        """Returns W with which a plain dense layer computes what both do, (D, units).

        Args:
            kernel: W (D, units).
        """
        width = self.units // self.parts
        pieces = [kernel[:, part * width : (part + 1) * width] for part in range(self.parts)]
        for i, part in enumerate(self.targets):
            down = ops.cast(self.down[:, i * self.rank : (i + 1) * self.rank], "float32")
            more = ops.matmul(down, ops.cast(self.up[i], "float32")) * (self.alpha / self.rank)
            pieces[part] = pieces[part] + ops.cast(more, kernel.dtype)
        return pieces[0] if self.parts == 1 else ops.concatenate(pieces, axis=-1)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """(..., D) -> (rows, units)."""
        return (None, self.units)


@keras.saving.register_keras_serializable("kbert")
class LoraAdapter(BlockAdapter):
    """Low-rank additions to some of the block's dense layers.

    Source: Hu et al. 2021, section 4.

    Args:
        intermediate_dim: I.
        rank: r of each addition.
        alpha: the additions' factor, times r.
        targets: dense layers, of `TARGETS`.

    Raises:
        ValueError: a target is unknown, there is none, or a size is not positive.
    """

    def __init__(
        self,
        intermediate_dim: int,
        rank: int = 8,
        alpha: float = 8.0,
        targets: Sequence[str] = ("query", "value"),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        unknown = [name for name in targets if name not in TARGETS]
        if unknown or not targets:
            raise ValueError(
                f"`targets` must be some of {', '.join(TARGETS)}. Received: {list(targets)}"
            )
        self.intermediate_dim, self.rank, self.alpha = intermediate_dim, rank, alpha
        self.targets = tuple(name for name in TARGETS if name in targets)

    def build(self, input_shape: Any) -> None:
        """Creates r (in + out) weights for each target, for an input (..., D)."""
        width, inner = input_shape[-1], self.intermediate_dim
        parts = [i for i, name in enumerate(TARGETS[:3]) if name in self.targets]
        sizes = {"attention_output": (width, width), "intermediate": (width, inner)}
        sizes |= {"output": (inner, width)}
        given = {"rank": self.rank, "alpha": self.alpha, "dtype": self.dtype_policy}
        self.low_rank: dict[str, LowRank] = {}
        if parts:
            self.low_rank["qkv"] = LowRank(
                3 * width, parts=3, targets=parts, **given, name="qkv"
            )
            self.low_rank["qkv"].build((None, width))
        for name, (entered, left) in sizes.items():
            if name in self.targets:
                self.low_rank[name] = LowRank(left, **given, name=name)
                self.low_rank[name].build((None, entered))
        self.built = True

    def added(self, layer: str, inputs: Any) -> Any:
        found = self.low_rank.get(layer)
        return None if found is None else found(inputs)

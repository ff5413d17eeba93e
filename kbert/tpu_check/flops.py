"""What a training step costs at least: its matrix products, and the time that a chip needs."""

import math
from dataclasses import dataclass
from typing import Any

from kbert.training.distributed.tpu_chips import TpuChip

_PRODUCTS = {"MatMul": ("transpose_a", False), "BatchMatMulV2": ("adj_x", True)}
_PRODUCTS["BatchMatMul"] = _PRODUCTS["BatchMatMulV3"] = _PRODUCTS["BatchMatMulV2"]


@dataclass(frozen=True)
class StepTime:
    """The shortest time of a step on a chip: nothing waits, and no cell of it is idle.

    Attributes:
        compute: Seconds of the matrix products at the chip's peak.
        memory: Seconds in which weights and state are read and written once, or, where the
            compiler told, all that it moves.
        links: Seconds in which the cores add up their gradients; 0 for one core.
    """

    compute: float
    memory: float
    links: float

    @property
    def ideal(self) -> float:
        """Seconds of a step where computing, memory and links work at the same time."""
        return max(self.compute, self.memory, self.links)


def step_time(
    chip: TpuChip, flops: float, moved_bytes: float, gradient_bytes: float, cores: int
) -> StepTime:
    """The shortest time of a step.

    Args:
        chip: The chip.
        flops: Of a core's step.
        moved_bytes: Between its memory and the chip.
        gradient_bytes: That all cores add up, in a ring: each sends 2 (n - 1) / n of them.
        cores: n, how many.
    """
    sent = gradient_bytes * 2 * (cores - 1) / cores
    return StepTime(flops / chip.flops, moved_bytes / chip.bandwidth, sent / chip.links)


def product_flops(graph: Any) -> int:
    """Multiplications and additions of the matrix products of a graph with fixed shapes.

    A product of (m, k) and (k, n) counts 2 m k n. What is not a product (softmax, LayerNorm, the
    update) costs a TPU time in its memory, not in its matrix units.

    Args:
        graph: The `FuncGraph` of a step.
    """
    return sum(_flops(operation) for operation in graph.get_operations())


def _flops(operation: Any) -> int:
    if operation.type == "Einsum":
        return _einsum_flops(operation)
    if operation.type not in _PRODUCTS:
        return 0
    flag, _ = _PRODUCTS[operation.type]
    rows, columns = operation.inputs[0].shape.as_list()[-2:]
    inner = rows if operation.get_attr(flag) else columns
    return 2 * inner * math.prod(operation.outputs[0].shape.as_list())


def _einsum_flops(operation: Any) -> int:
    """Two for each combination of all labels of an equation without an ellipsis."""
    terms = operation.get_attr("equation").decode().partition("->")[0].split(",")
    if len(terms) < 2 or any("." in term for term in terms):
        return 0
    sizes: dict[str, int] = {}
    for term, tensor in zip(terms, operation.inputs):
        sizes |= dict(zip(term.strip(), tensor.shape.as_list()))
    return 2 * math.prod(sizes.values())

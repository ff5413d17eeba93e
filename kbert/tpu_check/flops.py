"""Lower bound on the cost of a training step: its matrix products, and the time on a chip."""

import math
from dataclasses import dataclass
from typing import Any

from kbert.training.distributed.tpu_chips import TpuChip

_PRODUCTS = {"MatMul": ("transpose_a", False), "BatchMatMulV2": ("adj_x", True)}
_PRODUCTS["BatchMatMul"] = _PRODUCTS["BatchMatMulV3"] = _PRODUCTS["BatchMatMulV2"]


@dataclass(frozen=True)
class StepTime:
    """The shortest time of a step on a fully utilized chip.

    Attributes:
        compute: Seconds of the matrix products at the chip's peak.
        memory: Seconds to read and write weights and state once, or, if the compiler reports it,
            for all memory traffic.
        links: Seconds of the all-reduce of gradients over the cores; 0 for one core.
    """

    compute: float
    memory: float
    links: float

    @property
    def ideal(self) -> float:
        """Returns the seconds of a step in which computing, memory and links overlap."""
        return max(self.compute, self.memory, self.links)


def step_time(
    chip: TpuChip, flops: float, moved_bytes: float, gradient_bytes: float, cores: int
) -> StepTime:
    """Returns the shortest time of a step.

    Args:
        chip: The chip.
        flops: FLOPs of a core's step.
        moved_bytes: Memory traffic of a core.
        gradient_bytes: Gradients, all-reduced in a ring: each core sends 2 (n - 1) / n of them.
        cores: n, the number of cores.
    """
    sent = gradient_bytes * 2 * (cores - 1) / cores
    return StepTime(flops / chip.flops, moved_bytes / chip.bandwidth, sent / chip.links)


def product_flops(graph: Any) -> int:
    """Returns the FLOPs of the matrix products of a graph with fixed shapes.

    A product of (m, k) and (k, n) counts 2 m k n. Other operations (softmax, LayerNorm, the update)
    cost a TPU memory bandwidth, not time in its matrix units.

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
    """Returns two FLOPs for each combination of all labels of an equation without an ellipsis."""
    terms = operation.get_attr("equation").decode().partition("->")[0].split(",")
    if len(terms) < 2 or any("." in term for term in terms):
        return 0
    sizes: dict[str, int] = {}
    for term, tensor in zip(terms, operation.inputs):
        sizes |= dict(zip(term.strip(), tensor.shape.as_list()))
    return 2 * math.prod(sizes.values())

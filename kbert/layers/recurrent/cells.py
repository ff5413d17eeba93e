"""Recurrent cells as functions, with their backward steps.

Differentiating a loop adds up the gradient of each weight step by step, a product with few rows
and a pass over the whole matrix at a time. Here a backward step returns only gradients of inputs
and states, and one product for all steps then gives that of a weight.

Shapes: R rows, D units, W width of a state, G width of the gates.
"""

from abc import ABC, abstractmethod
from typing import Any

from keras import ops

CELLS = ("gru", "gru_reset_after", "lstm")
Arrays = tuple[Any, ...]


def product(rows: Any, kernel: Any) -> Any:
    """Returns rows (R, I) times a kernel (I, U), computed in the kernel's dtype, in the rows'."""
    return ops.cast(ops.matmul(ops.cast(rows, kernel.dtype), kernel), rows.dtype)


def product_over_rows(left: Any, right: Any, dtype: Any) -> Any:
    """Returns left (T, B, I), transposed, times right (T, B, U): (I, U), computed in `dtype`."""
    left, right = (ops.reshape(ops.cast(x, dtype), (-1, x.shape[-1])) for x in (left, right))
    return ops.matmul(ops.transpose(left), right)


class Cell(ABC):
    """One step of a recurrent layer of D units, on inputs that a kernel has multiplied before.

    `kernels` are what `prepared` makes of the weights, once for all steps.
    """

    gates: int  # G / D
    parts: int = 1  # W / D; the first D of a state are the output
    saved_parts: tuple[int, ...]  # widths / D of what `forward` saves
    has_recurrent_bias = False

    def __init__(self, units: int) -> None:
        self.units = units

    @property
    def width(self) -> int:
        """W."""
        return self.parts * self.units

    @property
    def saved_widths(self) -> tuple[int, ...]:
        """The width of each array that `forward` saves."""
        return tuple(part * self.units for part in self.saved_parts)

    def split(self, array: Any) -> list[Any]:
        """Cuts (..., n D) into n arrays (..., D)."""
        return ops.split(array, array.shape[-1] // self.units, axis=-1)

    @abstractmethod
    def prepared(self, weights: Arrays) -> Arrays:
        """Returns kernels of `forward` and `backward` for the recurrent weights."""

    @abstractmethod
    def forward(self, inputs: Any, state: Any, kernels: Arrays) -> tuple[Any, Arrays]:
        """Maps inputs (R, G) and a state (R, W) to the new state, and to what `backward` needs."""

    @abstractmethod
    def backward(
        self, upstream: Any, state: Any, saved: Arrays, kernels: Arrays
    ) -> tuple[Any, Any]:
        """Returns gradients of the inputs (R, G) and of the state (R, W).

        `upstream` is the gradient of the new state, `state` the one before the step.
        """

    @abstractmethod
    def weight_gradients(self, inputs: Any, states: Any, saved: Arrays, dtype: Any) -> Arrays:
        """Returns the gradients of the recurrent weights, from arrays (T, B, ...) of all steps.

        `inputs` are the gradients of the inputs, `states` those before each step.
        """


class GruCell(Cell):
    """A gated recurrent unit; gates in the order update z, reset r, candidate.

    h' = z h + (1 - z) tanh(x + (r h) U). Source: Cho et al. 2014, section 2.3. Bahdanau et al. 2014
    call 1 - z what is z here.
    """

    gates, saved_parts = 3, (2, 1)

    def prepared(self, weights: Arrays) -> Arrays:
        (kernel,) = weights
        gates, candidate = kernel[:, : 2 * self.units], kernel[:, 2 * self.units :]
        return gates, candidate, ops.transpose(gates), ops.transpose(candidate)

    def forward(self, inputs: Any, state: Any, kernels: Arrays) -> tuple[Any, Arrays]:
        of_gates, of_candidate = inputs[:, : 2 * self.units], inputs[:, 2 * self.units :]
        gates = ops.sigmoid(of_gates + product(state, kernels[0]))
        z, r = self.split(gates)
        candidate = ops.tanh(of_candidate + product(r * state, kernels[1]))
        return candidate + z * (state - candidate), (gates, candidate)

    def backward(
        self, upstream: Any, state: Any, saved: Arrays, kernels: Arrays
    ) -> tuple[Any, Any]:
        gates, candidate = saved
        z, r = self.split(gates)
        of_candidate = upstream * (1.0 - z) * (1.0 - candidate * candidate)
        of_reset = product(of_candidate, kernels[3])  # of r h
        of_gates = ops.concatenate([upstream * (state - candidate), of_reset * state], axis=-1)
        of_gates = of_gates * gates * (1.0 - gates)
        before = upstream * z + of_reset * r + product(of_gates, kernels[2])
        return ops.concatenate([of_gates, of_candidate], axis=-1), before

    def weight_gradients(self, inputs: Any, states: Any, saved: Arrays, dtype: Any) -> Arrays:
        of_gates, of_candidate = inputs[..., : 2 * self.units], inputs[..., 2 * self.units :]
        reset = states * saved[0][..., self.units :]
        both = (
            product_over_rows(states, of_gates, dtype),
            product_over_rows(reset, of_candidate, dtype),
        )
        return (ops.concatenate(both, axis=-1),)


class ResetAfterGruCell(Cell):
    """The gated recurrent unit of cuDNN and PyTorch: one product a step instead of two.

    h' = z h + (1 - z) tanh(x + r (h U + b)).
    """

    gates, saved_parts, has_recurrent_bias = 3, (2, 1, 1), True

    def prepared(self, weights: Arrays) -> Arrays:
        kernel, bias = weights
        return kernel, ops.transpose(kernel), bias

    def forward(self, inputs: Any, state: Any, kernels: Arrays) -> tuple[Any, Arrays]:
        edge = 2 * self.units
        of_state = product(state, kernels[0])
        gates = ops.sigmoid(inputs[:, :edge] + of_state[:, :edge])
        z, r = self.split(gates)
        reset = of_state[:, edge:] + ops.cast(kernels[2], state.dtype)
        candidate = ops.tanh(inputs[:, edge:] + r * reset)
        return candidate + z * (state - candidate), (gates, candidate, reset)

    def backward(
        self, upstream: Any, state: Any, saved: Arrays, kernels: Arrays
    ) -> tuple[Any, Any]:
        gates, candidate, reset = saved
        z, r = self.split(gates)
        of_candidate = upstream * (1.0 - z) * (1.0 - candidate * candidate)
        of_gates = ops.concatenate([upstream * (state - candidate), of_candidate * reset], axis=-1)
        of_gates = of_gates * gates * (1.0 - gates)
        of_product = ops.concatenate([of_gates, of_candidate * r], axis=-1)
        before = upstream * z + product(of_product, kernels[1])
        return ops.concatenate([of_gates, of_candidate], axis=-1), before

    def weight_gradients(self, inputs: Any, states: Any, saved: Arrays, dtype: Any) -> Arrays:
        edge = 2 * self.units
        of_reset = inputs[..., edge:] * saved[0][..., self.units :]
        of_product = ops.concatenate([inputs[..., :edge], of_reset], axis=-1)
        return product_over_rows(states, of_product, dtype), ops.sum(of_reset, axis=(0, 1))


class LstmCell(Cell):
    """Long short-term memory; a state is [h; c], gates stand as input, forget, cell, output.

    Source: Hochreiter and Schmidhuber 1997; with the forget gate of Gers et al. 2000.
    """

    gates, parts, saved_parts = 4, 2, (4,)

    def prepared(self, weights: Arrays) -> Arrays:
        (kernel,) = weights
        return kernel, ops.transpose(kernel)

    def forward(self, inputs: Any, state: Any, kernels: Arrays) -> tuple[Any, Arrays]:
        output, cell = self.split(state)
        i, f, new, o = self.split(inputs + product(output, kernels[0]))
        i, f, new, o = ops.sigmoid(i), ops.sigmoid(f), ops.tanh(new), ops.sigmoid(o)
        cell = f * cell + i * new
        state = ops.concatenate([o * ops.tanh(cell), cell], axis=-1)
        return state, (ops.concatenate([i, f, new, o], axis=-1),)

    def backward(
        self, upstream: Any, state: Any, saved: Arrays, kernels: Arrays
    ) -> tuple[Any, Any]:
        i, f, new, o = self.split(saved[0])
        of_output, of_cell = self.split(upstream)
        before = self.split(state)[1]
        squashed = ops.tanh(f * before + i * new)
        of_cell = of_cell + of_output * o * (1.0 - squashed * squashed)
        gradients = [
            of_cell * new * i * (1.0 - i),
            of_cell * before * f * (1.0 - f),
            of_cell * i * (1.0 - new * new),
            of_output * squashed * o * (1.0 - o),
        ]
        inputs = ops.concatenate(gradients, axis=-1)
        return inputs, ops.concatenate([product(inputs, kernels[1]), of_cell * f], axis=-1)

    def weight_gradients(self, inputs: Any, states: Any, saved: Arrays, dtype: Any) -> Arrays:
        return (product_over_rows(states[..., : self.units], inputs, dtype),)


def cell_of(name: str, units: int) -> Cell:
    """Returns the cell of a name in `CELLS`, or raises a ValueError."""
    kinds: dict[str, type[Cell]] = dict(zip(CELLS, (GruCell, ResetAfterGruCell, LstmCell)))
    if name not in kinds:
        raise ValueError(f"`cell` must be one of {list(CELLS)}. Received: cell={name!r}")
    return kinds[name](units)

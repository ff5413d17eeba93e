"""A recurrent layer over batches of padded sequences.

Shapes: B batch, T length, I input width, D units, W width of a state (2 D for an LSTM, else D).
"""

from typing import Any

import keras
from keras import ops

from kbert.gradients import own_gradient
from kbert.layers.recurrent.cells import Cell, cell_of
from kbert.layers.recurrent.scan import scan
from kbert.layers.residual import ConfiguredLayer


@keras.saving.register_keras_serializable("kbert")
class OrthogonalBlocks(keras.initializers.Initializer):
    """A random orthogonal matrix for each gate, side by side.

    Source: Bahdanau et al. 2014, appendix B.1. Drawn in float32: no backend decomposes others.
    """

    def __call__(self, shape: Any, dtype: Any = None) -> Any:
        rows, columns = shape
        # An initializer of Keras draws the same numbers each time that it is called.
        draws = [keras.initializers.Orthogonal() for _ in range(columns // rows)]
        blocks = [draw((rows, rows), "float32") for draw in draws]
        return ops.cast(ops.concatenate(blocks, axis=-1), dtype or "float32")


class RecurrentWeights(ConfiguredLayer):
    """Base of recurrent layers: the weights of one cell, and single steps.

    Args:
        units: D.
        cell: "gru" (Cho et al. 2014), "gru_reset_after" (cuDNN's and PyTorch's) or "lstm".
    """

    def __init__(self, units: int, cell: str = "gru", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if units < 1:
            raise ValueError(f"`units` must be at least 1. Received: units={units}")
        self.units, self.cell = units, cell
        self.functions: Cell = cell_of(cell, units)

    def _add_cell(self, input_dim: int) -> None:
        """Creates the kernels (I, G) and (D, G), and the biases."""
        gates = self.functions.gates * self.units
        self.kernel = self.add_weight(
            name="kernel", shape=(input_dim, gates), initializer="glorot_uniform"
        )
        self.recurrent_kernel = self.add_weight(
            name="recurrent_kernel", shape=(self.units, gates), initializer=OrthogonalBlocks()
        )
        self.bias = self.add_weight(name="bias", shape=(gates,), initializer="zeros")
        self.recurrent_bias = None
        if self.functions.has_recurrent_bias:
            self.recurrent_bias = self.add_weight(
                name="recurrent_bias", shape=(self.units,), initializer="zeros"
            )

    @property
    def state_width(self) -> int:
        """W."""
        return self.functions.width

    def output(self, states: Any) -> Any:
        """Returns what states show to others, (..., D).

        Args:
            states: (..., W).
        """
        return states[..., : self.units]

    def first_state(self, output: Any) -> Any:
        """Returns the state (..., W) of an output: a memory cell is 0.

        Args:
            output: (..., D).
        """
        more = self.state_width - self.units
        return ops.concatenate([output, ops.zeros_like(output)[..., :more]], -1) if more else output

    def _recurrent(self) -> tuple[Any, ...]:
        """Returns the recurrent weights, as tensors."""
        return tuple(
            as_tensor(w) for w in (self.recurrent_kernel, self.recurrent_bias) if w is not None
        )

    def _project(self, inputs: Any, kernel: Any) -> Any:
        """Maps inputs (..., I) to those of the gates, (..., G), in the dtype of states."""
        flat = ops.matmul(ops.reshape(inputs, (-1, inputs.shape[-1])), kernel)
        flat = ops.cast(ops.add(flat, self.bias), state_dtype(self.compute_dtype))
        return ops.reshape(flat, (*ops.shape(inputs)[:-1], self.kernel.shape[-1]))

    def step(self, inputs: Any, states: Any) -> Any:
        """Computes one step of independent sequences.

        Args:
            inputs: (..., I).
            states: (..., W), those before.

        Returns:
            The new states (..., W).
        """
        projected = self._project(inputs, self.kernel)
        flat = ops.reshape(projected, (-1, projected.shape[-1]))
        before = ops.reshape(ops.cast(states, flat.dtype), (-1, self.state_width))
        kernels = self.functions.prepared(self._recurrent())
        new, _ = self.functions.forward(flat, before, kernels)
        return ops.reshape(ops.cast(new, states.dtype), ops.shape(states))


def as_tensor(weight: Any) -> Any:
    """Returns the value of a weight: a function with its own gradient may not read variables."""
    return ops.reshape(weight, weight.shape)


def state_dtype(compute_dtype: str) -> str:
    """Returns the dtype of states between steps: sums over time lose too much in few bits."""
    return "float32" if compute_dtype in ("bfloat16", "float16") else compute_dtype


@keras.saving.register_keras_serializable("kbert")
class Recurrent(RecurrentWeights):
    """A recurrent layer over time, in either direction; padding leaves the state as it is.

    So the last state of a direction is the one after the last real token, on whichever side the
    padding stands.

    Args:
        units: D.
        cell: "gru" (Cho et al. 2014), "gru_reset_after" (cuDNN's and PyTorch's) or "lstm".
        backwards: whether a sequence is read from its end to its beginning.

    Raises:
        ValueError: `units` is not positive, or there is no such cell.
    """

    def __init__(
        self, units: int, cell: str = "gru", backwards: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(units, cell, **kwargs)
        self.backwards = backwards
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        """Creates the weights for inputs (..., I)."""
        self._add_cell(input_shape[-1])
        self.built = True

    def call(
        self, inputs: Any, mask: Any = None, initial: Any = None, constant: Any = None
    ) -> Any:
        """Computes the state after each token.

        Args:
            inputs: (B, T, I), or (B, T, I - C) with a constant.
            mask: bool (B, T), True for a real token, or None if all are.
            initial: (B, W), the state before the first token; None is zero.
            constant: (B, C), behind the inputs of all steps, or None.

        Returns:
            (B, T, W): at t the state after the tokens up to t, or from t on if `backwards`.
        """
        width = inputs.shape[-1]
        projected = self._project(inputs, self.kernel[:width])
        if constant is not None:
            more = ops.matmul(constant, self.kernel[width:])
            projected = projected + ops.cast(more, projected.dtype)[:, None]
        projected = ops.transpose(projected, (1, 0, 2))
        if initial is None:
            initial = ops.zeros((ops.shape(inputs)[0], self.state_width), projected.dtype)
        seen = None
        if mask is not None:
            seen = ops.cast(ops.transpose(mask), projected.dtype)[:, :, None]
        run = _Run(self.functions, seen, self.backwards)
        states = run.states(projected, ops.cast(initial, projected.dtype), self._recurrent())
        return ops.cast(ops.transpose(states, (1, 0, 2)), self.compute_dtype)

    def last(self, states: Any) -> Any:
        """Returns the state (B, W) after the last token.

        Args:
            states: (B, T, W), from `call`.
        """
        return states[:, 0 if self.backwards else -1]

    def compute_output_shape(self, input_shape: Any, *args: Any, **kwargs: Any) -> Any:
        """(B, T, I) -> (B, T, W)."""
        return (*input_shape[:-1], self.state_width)


class _Run:
    """A cell over one batch: `seen` is (T, B, 1), 1 for a real token, or None."""

    def __init__(self, cell: Cell, seen: Any, backwards: bool) -> None:
        self.cell, self.seen, self.backwards = cell, seen, backwards

    def states(self, inputs: Any, initial: Any, weights: tuple[Any, ...]) -> Any:
        """Returns the states (T, B, W) after each of the projected inputs (T, B, G)."""

        @own_gradient
        def run(inputs: Any, initial: Any, *weights: Any) -> Any:
            kernels = self.cell.prepared(weights)
            states, *saved = self._forward(inputs, initial, kernels)

            def gradient(*args: Any, upstream: Any = None) -> Any:
                (upstream,) = args if upstream is None else (upstream,)
                before = states_before(states, initial, self.backwards)
                found = self._backward(upstream, before, tuple(saved), kernels)
                of_inputs, of_initial = found
                dtype = weights[0].dtype
                of_weights = self.cell.weight_gradients(of_inputs, before, tuple(saved), dtype)
                casted = [ops.cast(g, w.dtype) for g, w in zip(of_weights, weights)]
                return (of_inputs, of_initial, *casted)

            return states, gradient

        return run(inputs, initial, *weights)

    def _forward(self, inputs: Any, initial: Any, kernels: Any) -> tuple[Any, ...]:
        """Returns the states, and what the backward steps need of each."""

        def step(carry: Any, now: Any) -> Any:
            (state,) = carry
            new, saved = self.cell.forward(now[0], state, kernels)
            if self.seen is not None:
                new = state + now[1] * (new - state)
            return (new,), (new, *saved)

        given = (inputs,) if self.seen is None else (inputs, self.seen)
        widths = (self.cell.width, *self.cell.saved_widths)
        return scan(step, (initial,), given, widths, self.backwards)[1]

    def _backward(
        self, upstream: Any, before: Any, saved: tuple[Any, ...], kernels: Any
    ) -> tuple[Any, Any]:
        """Returns the gradients of the inputs and of the initial state."""

        def step(carry: Any, now: Any) -> Any:
            of_new, (above, state), rest = carry[0], now[:2], now[2:]
            of_new = of_new + above
            kept, passed = of_new, 0.0
            if self.seen is not None:
                kept, rest = of_new * rest[-1], rest[:-1]
                passed = of_new - kept
            of_inputs, of_state = self.cell.backward(kept, state, rest, kernels)
            return (of_state + passed,), (of_inputs,)

        given = (upstream, before, *saved)
        given = given if self.seen is None else (*given, self.seen)
        start, gates = ops.zeros_like(before[0]), self.cell.gates * self.cell.units
        (of_initial,), (of_inputs,) = scan(step, (start,), given, (gates,), not self.backwards)
        return of_inputs, of_initial


def states_before(states: Any, initial: Any, backwards: bool = False) -> Any:
    """Returns the state before each step, for the states (T, B, W) after each."""
    if backwards:
        return ops.concatenate([states[1:], initial[None]], axis=0)
    return ops.concatenate([initial[None], states[:-1]], axis=0)

"""A recurrent decoder that attends to annotations of a source before each of its steps.

Sources: Bahdanau et al. 2014, appendix A.1.2; Luong et al. 2015 for products as scores; Xu et al.
2015, section 4, for hard attention and the gate.

Shapes: B batch, T target length, S source length, E input width, M width of an annotation, D units,
A width of the hidden layer of additive scores, G width of the gates, W width of a state, k
hypotheses a row.
"""

from typing import Any, NamedTuple

import keras
from keras import ops

from kbert.layers.recurrent.attention_steps import AttentionSteps, Kernels, Sampling
from kbert.layers.recurrent.recurrent import RecurrentWeights, as_tensor

SCORES = ("additive", "bilinear", "dot")


class Annotations(NamedTuple):
    """The states of an encoder that a decoder attends to, prepared once for a sentence."""

    values: Any  # (B, S, M)
    keys: Any  # (B, S, A), or (B, S, D) where scores are products
    mask: Any  # bool (B, S), True for a real token


class Attended(NamedTuple):
    """States, contexts and attention of all steps."""

    states: Any  # (B, T, W), after it
    contexts: Any  # (B, T, M), the mean of the annotations by what was chosen, behind the gate
    weights: Any  # (B, T, S), of the state before; they sum to 1
    # (B, T, S), the weights; of hard attention 1 at the place of a step, a constant for gradients
    chosen: Any


@keras.saving.register_keras_serializable("kbert")
class AttentionDecoder(RecurrentWeights):
    """A recurrent layer whose input is joined by a mean of annotations, weighted by its last state.

    e_j = v . tanh(h W + z_j U + b) for "additive" scores, h . (z_j U) for "bilinear" ones, h . z_j
    for "dot", which needs M = D; the weights are their softmax over the real tokens. z_j U is
    computed once a sentence.

    Args:
        units: D.
        cell: "gru" (Cho et al. 2014), "gru_reset_after" (cuDNN's and PyTorch's) or "lstm".
        score: "additive", "bilinear" or "dot".
        attention_dim: A; None is D.
        gated: whether the mean is scaled by a gate, sigmoid(h g + b), one number a step.
        hard: whether a step sees a single annotation: one that is drawn, or the likeliest.

    Raises:
        ValueError: a size is not positive, or a name is unknown.
    """

    def __init__(
        self,
        units: int,
        cell: str = "gru",
        score: str = "additive",
        attention_dim: int | None = None,
        gated: bool = False,
        hard: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(units, cell, **kwargs)
        if score not in SCORES:
            raise ValueError(f"`score` must be one of {list(SCORES)}. Received: score={score!r}")
        if attention_dim is not None and attention_dim < 1:
            raise ValueError(
                f"`attention_dim` must be at least 1. Received: attention_dim={attention_dim}"
            )
        self.score, self.attention_dim = score, attention_dim
        self.gated, self.hard = gated, hard

    def build(self, input_shape: Any, memory_shape: Any) -> None:
        """Creates the weights for inputs (..., E) and annotations (..., M).

        Raises:
            ValueError: scores are "dot", and M is not D.
        """
        wide, units = memory_shape[-1], self.units
        self.input_dim = input_shape[-1]
        self._add_cell(self.input_dim + wide)
        width = (self.attention_dim or units) if self.score == "additive" else units
        if self.score == "dot":
            if wide != units:
                raise ValueError(
                    '`score` "dot" needs annotations as wide as the states. '
                    f"Received: {wide} and {units}"
                )
        else:
            self.key = self._weight("key", (wide, width), "glorot_uniform")
        if self.score == "additive":
            self.query = self._weight("query", (units, width), "glorot_uniform")
            self.score_bias = self._weight("score_bias", (width,), "zeros")
            start = keras.initializers.RandomNormal(stddev=width**-0.5)
            self.score_vector = self._weight("score_vector", (width,), start)
        if self.gated:
            self.gate_kernel = self._weight("gate_kernel", (units, 1), "glorot_uniform")
            self.gate_bias = self._weight("gate_bias", (1,), "zeros")
        self.built = True

    def _weight(self, name: str, shape: tuple[int, ...], start: Any) -> Any:
        return self.add_weight(name=name, shape=shape, initializer=start)

    def annotations(self, values: Any, mask: Any) -> Annotations:
        """Returns what `call` and `attend` take.

        Args:
            values: (B, S, M).
            mask: bool (B, S), True for a real token.
        """
        if self.score == "dot":
            return Annotations(values, values, mask)
        keys = ops.matmul(ops.reshape(values, (-1, values.shape[-1])), self.key)
        if self.score == "additive":
            keys = keys + self.score_bias
        shape = (*ops.shape(values)[:2], self.key.shape[-1])
        return Annotations(values, ops.reshape(keys, shape), mask)

    def _kernels(self) -> Kernels:
        names = ["query", "score_vector"] if self.score == "additive" else []
        names += ["gate_kernel", "gate_bias"] if self.gated else []
        own = {name: as_tensor(getattr(self, name)) for name in names}
        return Kernels(
            context=as_tensor(self.kernel[self.input_dim :]),
            query=own.get("query"),
            score_vector=own.get("score_vector"),
            openness=own.get("gate_kernel"),
            openness_bias=own.get("gate_bias"),
            recurrent=self._recurrent(),
        )

    def call(
        self, inputs: Any, annotations: Annotations, initial: Any, sampling: Sampling | None = None
    ) -> Attended:
        """Computes all steps of a known target.

        Args:
            inputs: (B, T, E).
            annotations: what `annotations` returned.
            initial: (B, W), the state before the first step.
            sampling: how hard attention draws its places; None for the likeliest ones.
        """
        projected = self._project(inputs, self.kernel[: self.input_dim])
        projected = ops.transpose(projected, (1, 0, 2))
        wide = projected.dtype
        values, keys = (ops.cast(x, wide) for x in annotations[:2])
        steps = AttentionSteps(self.functions, annotations.mask, wide, self.hard, sampling)
        initial = ops.cast(initial, wide)
        found = steps.attended(projected, initial, values, keys, self._kernels())
        narrow = [ops.cast(ops.transpose(x, (1, 0, 2)), self.compute_dtype) for x in found]
        return Attended(*narrow)

    def attend(self, states: Any, annotations: Annotations) -> tuple[Any, Any]:
        """Returns contexts (B, k, M) and weights (B, k, S).

        Args:
            states: (B, k, W).
            annotations: what `annotations` returned.
        """
        steps = AttentionSteps(self.functions, annotations.mask, states.dtype, self.hard)
        values, keys = (ops.cast(x, states.dtype) for x in annotations[:2])
        seen = steps.look(self.output(states), values, keys, self._kernels())
        return seen.contexts, seen.chances

    def compute_output_shape(self, input_shape: Any, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("it depends on the annotations")

"""A recurrent decoder that attends to annotations of a source before each of its steps.

Source: Bahdanau et al. 2014, appendix A.1.2; Luong et al. 2015 for products as scores.

Shapes: B batch, T target length, S source length, E input width, M width of an annotation, D units,
A width of the hidden layer of additive scores, G width of the gates, W width of a state, k
hypotheses a row.
"""

from typing import Any, NamedTuple

import keras
from keras import ops

from kbert.layers.linear import own_gradient
from kbert.layers.masks import additive_mask
from kbert.layers.recurrent.cells import Cell, product, product_over_rows
from kbert.layers.recurrent.recurrent import RecurrentWeights, as_tensor, states_before
from kbert.layers.recurrent.scan import scan

SCORES = ("additive", "bilinear", "dot")


class Annotations(NamedTuple):
    """The states of an encoder that a decoder attends to, prepared once for a sentence."""

    values: Any  # (B, S, M)
    keys: Any  # (B, S, A), or (B, S, D) where scores are products
    mask: Any  # bool (B, S), True for a real token


class Attended(NamedTuple):
    """States, contexts and attention of all steps."""

    states: Any  # (B, T, W), after it
    contexts: Any  # (B, T, M), the mean of the annotations by the weights
    weights: Any  # (B, T, S), of the state before; they sum to 1


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

    Raises:
        ValueError: a size is not positive, or a name is unknown.
    """

    def __init__(
        self,
        units: int,
        cell: str = "gru",
        score: str = "additive",
        attention_dim: int | None = None,
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

    def _kernels(self) -> tuple[Any, ...]:
        """Returns the weights of a step: of the context, of additive scores, recurrent ones."""
        of_scores = (self.query, self.score_vector) if self.score == "additive" else ()
        weights = (self.kernel[self.input_dim :], *of_scores)
        return (*(as_tensor(w) for w in weights), *self._recurrent())

    def call(self, inputs: Any, annotations: Annotations, initial: Any) -> Attended:
        """Computes all steps of a known target.

        Args:
            inputs: (B, T, E).
            annotations: what `annotations` returned.
            initial: (B, W), the state before the first step.
        """
        projected = self._project(inputs, self.kernel[: self.input_dim])
        projected = ops.transpose(projected, (1, 0, 2))
        wide = projected.dtype
        values, keys = (ops.cast(x, wide) for x in annotations[:2])
        run = _Run(self, annotations.mask, wide)
        found = run.attended(projected, ops.cast(initial, wide), values, keys, self._kernels())
        narrow = [ops.cast(ops.transpose(x, (1, 0, 2)), self.compute_dtype) for x in found]
        return Attended(*narrow)

    def attend(self, states: Any, annotations: Annotations) -> tuple[Any, Any]:
        """Returns contexts (B, k, M) and weights (B, k, S).

        Args:
            states: (B, k, W).
            annotations: what `annotations` returned.
        """
        run = _Run(self, annotations.mask, states.dtype)
        values, keys = (ops.cast(x, states.dtype) for x in annotations[:2])
        return run.attend(self.output(states), values, keys, self._kernels())

    def compute_output_shape(self, input_shape: Any, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("it depends on the annotations")


class _Run:
    """A decoder over one batch, with the mask bool (B, S) of its annotations."""

    def __init__(self, layer: AttentionDecoder, mask: Any, dtype: Any) -> None:
        self.cell: Cell = layer.functions
        self.units = layer.units
        self.seen = ops.cast(mask, dtype)[:, None]  # (B, 1, S)
        name = keras.backend.standardize_dtype(dtype)
        self.penalty = additive_mask(ops.cast(mask, "bool"), name)[:, None]
        self.is_additive = layer.score == "additive"
        self.own = 3 if self.is_additive else 1  # kernels before the recurrent ones

    def attend(self, output: Any, values: Any, keys: Any, weights: Any) -> tuple[Any, Any]:
        """Returns contexts (B, k, M) and weights (B, k, S) of outputs (B, k, D)."""
        if self.is_additive:
            squashed = ops.tanh(product_of_all(output, weights[1])[:, :, None] + keys[:, None])
            scores = ops.sum(squashed * ops.cast(weights[2], keys.dtype), axis=-1)
        else:
            scores = ops.matmul(output, ops.transpose(keys, (0, 2, 1)))
        chances = ops.softmax(scores + self.penalty, axis=-1) * self.seen
        return ops.matmul(chances, values), chances

    def attended(self, inputs: Any, initial: Any, values: Any, keys: Any, weights: Any) -> Any:
        """Returns states (T, B, W), contexts (T, B, M) and weights (T, B, S)."""

        @own_gradient
        def run(inputs: Any, initial: Any, values: Any, keys: Any, *weights: Any) -> Any:
            kernels = self.cell.prepared(weights[self.own :])
            states, contexts, chances, *saved = self._forward(
                inputs, initial, values, keys, weights, kernels
            )

            def gradient(*args: Any, upstream: Any = None) -> Any:
                args = args if upstream is None else upstream
                ups = args[0] if len(args) == 1 else args
                before = states_before(states, initial)
                kept = (before, contexts, chances, *saved)
                return self._gradients(ups, kept, values, keys, weights, kernels)

            return (states, contexts, chances), gradient

        return run(inputs, initial, values, keys, *weights)

    def _forward(
        self, inputs: Any, initial: Any, values: Any, keys: Any, weights: Any, kernels: Any
    ) -> Any:
        def step(carry: Any, now: Any) -> Any:
            (state,) = carry
            context, chances = self.attend(state[:, None, : self.units], values, keys, weights)
            context, chances = context[:, 0], chances[:, 0]
            joined = now[0] + product(context, weights[0])
            state, saved = self.cell.forward(joined, state, kernels)
            return (state,), (state, context, chances, *saved)

        widths = (self.cell.width, values.shape[-1], ops.shape(keys)[1], *self.cell.saved_widths)
        return scan(step, (initial,), (inputs,), widths)[1]

    def _gradients(
        self, upstream: Any, kept: Any, values: Any, keys: Any, weights: Any, kernels: Any
    ) -> tuple[Any, ...]:
        """Returns the gradients of inputs, initial state, values, keys and weights."""
        before, contexts, chances, *saved = kept
        outputs = before[..., : self.units]
        to_context = ops.transpose(weights[0])
        to_query = vector = None
        if self.is_additive:
            to_query, vector = ops.transpose(weights[1]), ops.cast(weights[2], keys.dtype)

        def step(carry: Any, now: Any) -> Any:
            (of_state,) = carry
            above, above_context, above_chances, state, chances, *saved = now
            of_inputs, of_state = self.cell.backward(of_state + above, state, saved, kernels)
            of_context = product(of_inputs, to_context) + above_context
            of_chances = ops.matmul(of_context[:, None], ops.transpose(values, (0, 2, 1)))[:, 0]
            of_chances = of_chances + above_chances
            mean = ops.sum(chances * of_chances, axis=-1, keepdims=True)
            of_scores = chances * (of_chances - mean)
            output = state[:, : self.units]
            if self.is_additive:
                inner = ops.tanh(product(output, weights[1])[:, None] + keys)
                inner = of_scores[..., None] * (1.0 - inner * inner)
                of_query = [ops.sum(inner, axis=1) * vector]
                of_output = product(of_query[0], to_query)
            else:
                of_query, of_output = [], ops.matmul(of_scores[:, None], keys)[:, 0]
            rest = ops.shape(state)[-1] - self.units
            of_state = of_state + ops.pad(of_output, ((0, 0), (0, rest)))
            return (of_state,), (of_inputs, of_context, of_scores, *of_query)

        widths = [self.cell.gates * self.units, values.shape[-1], ops.shape(keys)[1]]
        widths += [keys.shape[-1]] if self.is_additive else []
        given, start = (*upstream, before, chances, *saved), ops.zeros_like(before[0])
        (of_initial,), kept = scan(step, (start,), given, tuple(widths), reverse=True)
        of_inputs, of_context, of_scores, *of_queries = kept
        of_values = _sums_of_products(chances, of_context)
        of_kernel = product_over_rows(contexts, of_inputs, weights[0].dtype)
        recurrent = self.cell.weight_gradients(of_inputs, before, tuple(saved), weights[-1].dtype)
        of_weights = [of_kernel, *recurrent]
        if self.is_additive:
            of_keys, of_vector = _additive_gradients(of_scores, outputs, keys, weights)
            of_query = product_over_rows(outputs, of_queries[0], weights[1].dtype)
            of_weights[1:1] = [of_query, of_vector]
        else:
            of_keys = _sums_of_products(of_scores, outputs)
        casted = [ops.cast(g, w.dtype) for g, w in zip(of_weights, weights)]
        return (of_inputs, of_initial, of_values, of_keys, *casted)


def _additive_gradients(of_scores: Any, outputs: Any, keys: Any, weights: Any) -> tuple[Any, Any]:
    """Returns the gradients of keys (B, S, A) and score vector (A,).

    `of_scores` are those of the scores (T, B, S) of outputs (T, B, D). What the scores are made of,
    (B, S, A), is recomputed for each step: of all steps it would not fit into memory.
    """
    queries = product_of_all(outputs, weights[1])
    dtype = keys.dtype

    def add(time: Any, sums: Any) -> Any:
        of_keys, of_vector = sums
        inner = ops.tanh(ops.take(queries, time, axis=0)[:, None] + keys)
        chosen = ops.take(of_scores, time, axis=0)[..., None]
        products = chosen * inner
        return of_keys + (chosen - products * inner), of_vector + ops.sum(products, axis=(0, 1))

    start = (ops.zeros_like(keys), ops.zeros((keys.shape[-1],), dtype))
    of_keys, of_vector = ops.fori_loop(0, ops.shape(outputs)[0], add, start)
    return of_keys * ops.cast(weights[2], dtype), of_vector


def product_of_all(states: Any, kernel: Any) -> Any:
    """Returns states (B, k, I) times a kernel (I, U): (B, k, U)."""
    flat = product(ops.reshape(states, (-1, states.shape[-1])), kernel)
    return ops.reshape(flat, (*ops.shape(states)[:2], kernel.shape[-1]))


def _sums_of_products(chances: Any, vectors: Any) -> Any:
    """Returns the sum over t of the outer products of (T, B, S) and (T, B, M): (B, S, M)."""
    return ops.matmul(ops.transpose(chances, (1, 2, 0)), ops.transpose(vectors, (1, 0, 2)))

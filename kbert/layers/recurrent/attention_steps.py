"""The steps of a recurrent decoder with attention, and their gradients.

Sources: Bahdanau et al. 2014, appendix A.1.2; Luong et al. 2015 for products as scores; Xu et al.
2015, section 4, for hard attention and the gate.

Shapes: B batch, T target length, S source length, M width of an annotation, D units, A width of the
hidden layer of additive scores, G width of the gates, W width of a state, k hypotheses a row.
"""

from typing import Any, NamedTuple

import keras
from keras import ops

from kbert.gradients import own_gradient
from kbert.layers.masks import additive_mask
from kbert.layers.recurrent.cells import Cell, product, product_over_rows
from kbert.layers.recurrent.recurrent import states_before
from kbert.layers.recurrent.scan import scan


class Kernels(NamedTuple):
    """The weights of a step; None for those that a decoder has not."""

    context: Any  # (M, G), from the mean of annotations to the gates of the cell
    query: Any  # (D, A), of additive scores
    score_vector: Any  # (A,), of additive scores
    openness: Any  # (D, 1), of the gate on the mean
    openness_bias: Any  # (1,)
    recurrent: tuple[Any, ...]  # of the cell


class Sampling(NamedTuple):
    """The draws by which steps of hard attention choose their places."""

    noise: Any  # (B, T, S), added to the scores; the place is that of the largest sum
    is_soft: Any  # (B, 1), 1 for a row that attends softly, else 0


class Looked(NamedTuple):
    """The sight of one step."""

    contexts: Any  # (B, k, M), behind the gate
    chances: Any  # (B, k, S), softmax of the scores
    chosen: Any  # (B, k, S), the weights of the mean: the chances, or a single 1
    openness: Any  # (B, k, 1) of the gate; None without one


class AttentionSteps:
    """The steps over one batch.

    Args:
        cell: the cell of the decoder.
        mask: bool (B, S), True for a real annotation.
        dtype: of the states.
        is_hard: whether a step sees a single annotation.
        sampling: of hard attention; None for the likeliest places.
    """

    def __init__(
        self, cell: Cell, mask: Any, dtype: Any, is_hard: bool, sampling: Sampling | None = None
    ) -> None:
        self.cell, self.is_hard = cell, is_hard
        self.seen = ops.cast(mask, dtype)[:, None]  # (B, 1, S)
        name = keras.backend.standardize_dtype(dtype)
        self.penalty = additive_mask(ops.cast(mask, "bool"), name)[:, None]
        self.noise = self.is_soft = None
        if sampling is not None:
            self.noise = ops.cast(ops.transpose(sampling.noise, (1, 0, 2)), dtype)  # (T, B, S)
            self.is_soft = ops.cast(sampling.is_soft, dtype)

    def look(
        self, output: Any, values: Any, keys: Any, kernels: Kernels, noise: Any = None
    ) -> Looked:
        """Looks at annotations from outputs (B, k, D); `noise` is (B, S)."""
        if kernels.query is not None:
            squashed = ops.tanh(product_of_all(output, kernels.query)[:, :, None] + keys[:, None])
            scores = ops.sum(squashed * ops.cast(kernels.score_vector, keys.dtype), axis=-1)
        else:
            scores = ops.matmul(output, ops.transpose(keys, (0, 2, 1)))
        scores = scores + self.penalty
        # Keras warns of a softmax over one annotation.
        chances = ops.softmax(scores, axis=-1) if keys.shape[1] != 1 else ops.ones_like(scores)
        chosen = chances = chances * self.seen
        if self.is_hard:
            chosen = self._at_one_place(scores, chances, noise)
        contexts, openness = ops.matmul(chosen, values), None
        if kernels.openness is not None:
            openness = product_of_all(output, kernels.openness)
            openness = ops.sigmoid(openness + ops.cast(kernels.openness_bias, openness.dtype))
            contexts = contexts * openness
        return Looked(contexts, chances, chosen, openness)

    def _at_one_place(self, scores: Any, chances: Any, noise: Any) -> Any:
        noisy = scores if noise is None else scores + noise[:, None]
        places = ops.argmax(noisy, axis=-1)
        chosen = ops.one_hot(places, ops.shape(scores)[-1], dtype=chances.dtype) * self.seen
        if self.is_soft is None:
            return chosen
        return chosen + self.is_soft[:, None] * (chances - chosen)

    def attended(
        self, inputs: Any, initial: Any, values: Any, keys: Any, kernels: Kernels
    ) -> tuple[Any, ...]:
        """Returns states (T, B, W), contexts (T, B, M), chances and what was chosen (T, B, S)."""
        names = [name for name in Kernels._fields[:-1] if getattr(kernels, name) is not None]
        given = [getattr(kernels, name) for name in names]

        @own_gradient
        def run(inputs: Any, initial: Any, values: Any, keys: Any, *weights: Any) -> Any:
            own = dict.fromkeys(Kernels._fields[:-1]) | dict(zip(names, weights))
            found = Kernels(**own, recurrent=weights[len(names) :])
            kept = self._forward(inputs, initial, values, keys, found)

            def gradient(*args: Any, upstream: Any = None) -> Any:
                args = args if upstream is None else upstream
                ups = args[0] if len(args) == 1 else args
                past = {**kept, "before": states_before(kept["states"], initial)}
                *of_inputs, of_own = self._gradients(ups, past, values, keys, found)
                of_weights = [*(of_own[name] for name in names), *of_own["recurrent"]]
                casted = [ops.cast(g, w.dtype) for g, w in zip(of_weights, weights)]
                return (*of_inputs, *casted)

            shown = [kept[name] for name in ("states", "contexts", "chances")]
            return (*shown, *([kept["chosen"]] if self.is_hard else [])), gradient

        states, contexts, chances, *chosen = run(
            inputs, initial, values, keys, *given, *kernels.recurrent
        )
        return states, contexts, chances, chosen[0] if chosen else chances

    def _forward(
        self, inputs: Any, initial: Any, values: Any, keys: Any, kernels: Kernels
    ) -> dict[str, Any]:
        """Returns arrays (T, B, ...) by name: states, contexts, and what gradients need."""
        prepared = self.cell.prepared(kernels.recurrent)
        length = ops.shape(keys)[1]
        widths = {"states": self.cell.width, "contexts": values.shape[-1], "chances": length}
        widths |= {"chosen": length} if self.is_hard else {}
        widths |= {"openness": 1} if kernels.openness is not None else {}

        def step(carry: Any, now: Any) -> Any:
            (state,), (projected, *noise) = carry, now
            seen = self.look(state[:, None, : self.cell.units], values, keys, kernels, *noise)
            context = seen.contexts[:, 0]
            state, saved = self.cell.forward(
                projected + product(context, kernels.context), state, prepared
            )
            more = [getattr(seen, name)[:, 0] for name in list(widths)[2:]]
            return (state,), (state, context, *more, *saved)

        given = (inputs,) if self.noise is None else (inputs, self.noise)
        every = (*widths.values(), *self.cell.saved_widths)
        kept = scan(step, (initial,), given, every)[1]
        return {**dict(zip(widths, kept)), "saved": kept[len(widths) :]}

    def _gradients(
        self, upstream: Any, kept: dict[str, Any], values: Any, keys: Any, kernels: Kernels
    ) -> tuple[Any, ...]:
        """Returns those of inputs, initial state, values and keys; and of weights by name."""
        before, saved = kept["before"], tuple(kept["saved"])
        chosen = kept.get("chosen", kept["chances"])
        (of_initial,), found = self._backward(upstream, kept, chosen, values, keys, kernels)
        of_inputs, of_context, of_scores, *more = found
        outputs = before[..., : self.cell.units]
        of_own = {"context": product_over_rows(kept["contexts"], of_inputs, kernels.context.dtype)}
        if kernels.query is not None:
            of_query = more.pop(0)
            of_own["query"] = product_over_rows(outputs, of_query, kernels.query.dtype)
            of_keys, of_own["score_vector"] = _additive_gradients(of_scores, outputs, keys, kernels)
        else:
            of_keys = _sums_of_products(of_scores, outputs)
        if kernels.openness is not None:
            of_gate = more.pop(0)
            of_own["openness"] = product_over_rows(outputs, of_gate, kernels.openness.dtype)
            of_own["openness_bias"] = ops.sum(of_gate, axis=(0, 1))
        dtype = kernels.recurrent[-1].dtype
        of_own["recurrent"] = self.cell.weight_gradients(of_inputs, before, saved, dtype)
        return of_inputs, of_initial, _sums_of_products(chosen, of_context), of_keys, of_own

    def _backward(
        self, ups: Any, kept: dict[str, Any], chosen: Any, values: Any, keys: Any, kernels: Kernels
    ) -> Any:
        """Goes back through the steps; returns the gradients of their parts, (T, B, ...) each.

        These are the projected inputs, means before the gate, scores, and where there are such, the
        queries of additive scores and the gate before its sigmoid.
        """
        prepared, units = self.cell.prepared(kernels.recurrent), self.cell.units
        to_context, is_gated = ops.transpose(kernels.context), kernels.openness is not None
        to_query = vector = to_gate = None
        if kernels.query is not None:
            to_query = ops.transpose(kernels.query)
            vector = ops.cast(kernels.score_vector, keys.dtype)
        if is_gated:
            to_gate = ops.transpose(kernels.openness)

        def step(carry: Any, now: Any) -> Any:
            (of_state,) = carry
            above, above_context, above_chances, state, chances, chosen, *more = now
            openness, saved = (more[0], more[1:]) if is_gated else (1.0, more)
            of_inputs, of_state = self.cell.backward(of_state + above, state, saved, prepared)
            of_context = product(of_inputs, to_context) + above_context
            of_chosen = ops.matmul(of_context[:, None], ops.transpose(values, (0, 2, 1)))[:, 0]
            output, of_output, of_parts = state[:, :units], 0.0, []
            if is_gated:
                of_gate = ops.sum(chosen * of_chosen, axis=-1, keepdims=True)
                of_gate = of_gate * openness * (1.0 - openness)
                of_context, of_chosen = of_context * openness, of_chosen * openness
                of_output = product(of_gate, to_gate)
            # A place that was drawn has no gradient; soft rows among them have.
            passed = of_chosen
            if self.is_hard:
                passed = 0.0 if self.is_soft is None else self.is_soft * of_chosen
            of_chances = above_chances + passed
            mean = ops.sum(chances * of_chances, axis=-1, keepdims=True)
            of_scores = chances * (of_chances - mean)
            if vector is not None:
                inner = ops.tanh(product(output, kernels.query)[:, None] + keys)
                inner = of_scores[..., None] * (1.0 - inner * inner)
                of_parts = [ops.sum(inner, axis=1) * vector]
                of_output = of_output + product(of_parts[0], to_query)
            else:
                of_output = of_output + ops.matmul(of_scores[:, None], keys)[:, 0]
            of_parts += [of_gate] if is_gated else []
            rest = ops.shape(state)[-1] - units
            of_state = of_state + ops.pad(of_output, ((0, 0), (0, rest)))
            return (of_state,), (of_inputs, of_context, of_scores, *of_parts)

        widths = [self.cell.gates * units, values.shape[-1], ops.shape(keys)[1]]
        widths += [keys.shape[-1]] if vector is not None else []
        widths += [1] if is_gated else []
        gates = [kept["openness"]] if is_gated else []
        before = kept["before"]
        given = (*ups[:3], before, kept["chances"], chosen, *gates, *kept["saved"])
        return scan(step, (ops.zeros_like(before[0]),), given, tuple(widths), reverse=True)


def _additive_gradients(
    of_scores: Any, outputs: Any, keys: Any, kernels: Kernels
) -> tuple[Any, Any]:
    """Returns the gradients of keys (B, S, A) and score vector (A,).

    `of_scores` are those of the scores (T, B, S) of outputs (T, B, D). What the scores are made of,
    (B, S, A), is recomputed for each step: of all steps it would not fit into memory.
    """
    queries = product_of_all(outputs, kernels.query)
    dtype = keys.dtype

    def add(time: Any, sums: Any) -> Any:
        of_keys, of_vector = sums
        inner = ops.tanh(ops.take(queries, time, axis=0)[:, None] + keys)
        chosen = ops.take(of_scores, time, axis=0)[..., None]
        products = chosen * inner
        return of_keys + (chosen - products * inner), of_vector + ops.sum(products, axis=(0, 1))

    start = (ops.zeros_like(keys), ops.zeros((keys.shape[-1],), dtype))
    of_keys, of_vector = ops.fori_loop(0, ops.shape(outputs)[0], add, start)
    return of_keys * ops.cast(kernels.score_vector, dtype), of_vector


def product_of_all(states: Any, kernel: Any) -> Any:
    """Returns states (B, k, I) times a kernel (I, U): (B, k, U)."""
    flat = product(ops.reshape(states, (-1, states.shape[-1])), kernel)
    return ops.reshape(flat, (*ops.shape(states)[:2], kernel.shape[-1]))


def _sums_of_products(chances: Any, vectors: Any) -> Any:
    """Returns the sum over t of the outer products of (T, B, S) and (T, B, M): (B, S, M)."""
    return ops.matmul(ops.transpose(chances, (1, 2, 0)), ops.transpose(vectors, (1, 0, 2)))

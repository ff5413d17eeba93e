"""An independent NumPy reference of image captioning with attention.

Source: Xu et al. 2015, "Show, Attend and Tell", arXiv 1502.03044: the decoder (3.1.2), stochastic
"hard" attention (4.1), deterministic "soft" attention (4.2) with its gate and its doubly stochastic
penalty (4.2.1). As in Bahdanau et al. the score is additive; the LSTM has no peepholes.

As in `tests.numpy_sequence_models`: float64, no dropout, no trick, and nothing here knows kbert.
One image at a time: no batch axis, no padding, no masks. Arrays come in by name. Without
`decoder/gate_kernel` and `decoder/gate_bias` there is no gate; without `output/kernel` the output
is the transposed table of the embeddings. The token ids begin with the start token; row t of the
logits is the prediction after the ids 0 to t.

Letters: L places of an image's map, M width of an annotation vector, T length of the caption,
E embedding, D state, A attention, V vocabulary.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tests.numpy_reference import Array, dense, float64, log_softmax, softmax
from tests.numpy_sequence_models import (
    Arrays,
    Ids,
    State,
    linear,
    lstm_step,
    output_logits,
    sigmoid,
    target_table,
)

ATTENTIONS = ("soft", "hard", "mean")


class CaptionStep(NamedTuple):
    """Logits (V), attention (L), or (1) of "mean", the gate and the new state (h, c)."""

    logits: Array
    attention: Array
    gate: float
    state: State


class CaptionOutputs(NamedTuple):
    """Logits (T, V), attention (T, L), or (T, 1) of "mean", gates (T) and the last (h, c)."""

    logits: Array
    attention: Array
    gates: Array
    state: State


# --- the decoder -----------------------------------------------------------------------------


def initial_state(w: Arrays, annotations: Array) -> State:
    """tanh(mean of the a_i times `kernel` (M, D) + `bias`), h by `initial_output`, c by `_cell`.

    (L, M) -> h_0 (D) and c_0 (D).
    """
    mean = float64(annotations).mean(axis=0)
    return np.tanh(linear(w, "initial_output", mean)), np.tanh(linear(w, "initial_cell", mean))


def attention_weights(w: Arrays, annotations: Array, h: Array) -> Array:
    """alpha = softmax over i of e_i: annotations (L, M) and h_{t-1} (D) -> (L).

    e_i = `decoder/score_vector` (A) . tanh(h `decoder/query` (D, A) + a_i `decoder/key` (M, A) +
    `decoder/score_bias` (A)).
    """
    query = h @ float64(w["decoder/query"])
    scores = []
    for a in annotations:
        hidden = np.tanh(query + dense(a, w["decoder/key"], w["decoder/score_bias"]))
        scores.append(hidden @ float64(w["decoder/score_vector"]))
    return softmax(float64(scores))


def gate_value(w: Arrays, h: Array) -> float:
    """beta = sigmoid(h_{t-1} . `decoder/gate_kernel` (D, 1) + `decoder/gate_bias` (1)), or 1."""
    if "decoder/gate_kernel" not in w:
        return 1.0
    return float(sigmoid(dense(h, w["decoder/gate_kernel"], w["decoder/gate_bias"]))[0])


def deep_output(w: Arrays, embedded: Array, h: Array, z: Array) -> Array:
    """The logits (V) of E y_{t-1} (E), h_t (D) and z_t (M), by way of their sum x_t (E).

    x_t = E y_{t-1} + h_t `output_state/kernel` (D, E) + `output_state/bias` (E) + z_t
    `output_context/kernel` (M, E).
    """
    x = embedded + linear(w, "output_state", h) + dense(z, w["output_context/kernel"])
    return output_logits(w, x)


def caption_step(
    w: Arrays,
    annotations: Array,
    state: State,
    token: int,
    *,
    attention: str,
    place: int | None = None,
) -> CaptionStep:
    """One step of the decoder from (h_{t-1}, c_{t-1}) and y_{t-1}.

    Args:
        w: the arrays.
        annotations: a (L, M).
        state: h (D) and c (D).
        token: y_{t-1}.
        attention: "soft", z = beta sum_i alpha_i a_i; "hard", z = beta a_s; "mean", as if the image
            had one annotation vector, the mean of the a_i.
        place: s of "hard"; None for the place of the largest weight, the first of equal ones.
    """
    if attention not in ATTENTIONS:
        raise ValueError(f"`attention` must be one of {ATTENTIONS}. Received: {attention!r}")
    if place is not None and attention != "hard":
        raise ValueError(f"`place` is for hard attention. Received: attention={attention!r}")
    a = float64(annotations)
    if attention == "mean":
        a = a.mean(axis=0, keepdims=True)
    h, c = state
    alpha = attention_weights(w, a, h)
    if attention == "hard":
        z = a[int(np.argmax(alpha)) if place is None else place]
    else:
        z = sum((alpha_i * a_i for alpha_i, a_i in zip(alpha, a)), np.zeros(a.shape[1]))
    gate = gate_value(w, h)
    z = gate * z
    embedded = target_table(w)[token]
    new_state = lstm_step(w, "decoder", np.concatenate([embedded, z]), h, c)
    return CaptionStep(deep_output(w, embedded, new_state[0], z), alpha, gate, new_state)


def caption(
    w: Arrays,
    annotations: Array,
    target_ids: Ids,
    *,
    attention: str,
    places: Sequence[int] | None = None,
) -> CaptionOutputs:
    """The decoder along a known caption.

    Args:
        w: the arrays.
        annotations: a (L, M).
        target_ids: T ids, the start token first.
        attention: "soft", "hard" or "mean", as in `caption_step`.
        places: s_t of each of the T steps of "hard"; None for the places of the largest weights.
    """
    state, steps = initial_state(w, annotations), []
    chosen = [None] * len(target_ids) if places is None else places
    for token, place in zip(target_ids, chosen, strict=True):
        step = caption_step(w, annotations, state, token, attention=attention, place=place)
        state = step.state
        steps.append(step)
    logits, alpha, gates, _ = zip(*steps)
    return CaptionOutputs(np.stack(logits), np.stack(alpha), float64(gates), state)


# --- the loss of one caption -----------------------------------------------------------------


def log_probability(logits: Array, targets: Ids) -> float:
    """log p(y) = sum_t log p(y_t): logits (T, V) and T targets, y_t the one of row t."""
    rows = log_softmax(logits)
    return float(sum(row[target] for row, target in zip(rows, targets, strict=True)))


def caption_cross_entropy(logits: Array, targets: Ids) -> float:
    """sum_t -log p(y_t), not averaged: logits (T, V) and T targets."""
    return -log_probability(logits, targets)


def doubly_stochastic_penalty(attention: Array) -> float:
    """sum_i (1 - sum_t alpha_ti)^2 of the weights (T, L), without its factor lambda."""
    return float(sum((1.0 - column.sum()) ** 2 for column in float64(attention).T))


def log_places(attention: Array, places: Sequence[int]) -> float:
    """log p(s) = sum_t log alpha_{t, s_t}: the weights (T, L) and T places."""
    rows = float64(attention)
    return float(sum(np.log(row[place]) for row, place in zip(rows, places, strict=True)))


def reinforce_term(
    logits: Array, targets: Ids, attention: Array, places: Sequence[int], baseline: float
) -> float:
    """-(log p(y) - b) sum_t log alpha_{t, s_t}, to be minimized, without its factor.

    log p(y) is a constant here: a gradient goes through the weights alone.

    Args:
        logits: (T, V).
        targets: T ids.
        attention: the weights (T, L).
        places: T places.
        baseline: b.
    """
    reward = log_probability(logits, targets) - baseline
    return -reward * log_places(attention, places)


def attention_entropy(attention: Array) -> float:
    """sum_t -sum_i alpha_ti log alpha_ti of the weights (T, L); a weight of zero adds nothing."""
    return -sum(float(alpha * np.log(alpha)) for alpha in float64(attention).ravel() if alpha > 0)


# --- search ----------------------------------------------------------------------------------


def all_captions(
    vocabulary_size: int, max_tokens: int, end_id: int, unfinished: bool
) -> Iterator[tuple[int, ...]]:
    """Every caption of 1 to `max_tokens` ids whose last one, and no other, is the end token.

    The start token is not in it. With `unfinished` also those of exactly `max_tokens` ids without
    an end. The short ones come first, then the smaller ids.
    """
    words = [token for token in range(vocabulary_size) if token != end_id]
    for length in range(max_tokens):
        for ids in itertools.product(words, repeat=length):
            yield (*ids, end_id)
    if unfinished:
        yield from itertools.product(words, repeat=max_tokens)


def best_caption(
    w: Arrays,
    annotations: Array,
    *,
    start_id: int,
    end_id: int,
    max_tokens: int,
    attention: str,
    unfinished: bool = True,
) -> tuple[tuple[int, ...], float]:
    """The caption of the largest log-probability of all there are, each one run from its start.

    Args:
        w: the arrays; V must be tiny, V^max_tokens captions are read.
        annotations: a (L, M).
        start_id: the first token the decoder reads; it may also come inside of a caption.
        end_id: the token which ends a caption; its probability counts.
        max_tokens: the most ids of a caption, the end among them, the start not.
        attention: "soft", "hard" (by the largest weight) or "mean".
        unfinished: a caption of `max_tokens` ids without an end counts too.

    Returns:
        The ids with the end and without the start, and their log-probability; the first of equal
        ones in the order of `all_captions`.
    """
    size = len(float64(w["output/bias"]))
    best: tuple[tuple[int, ...], float] = ((), -np.inf)
    for ids in all_captions(size, max_tokens, end_id, unfinished):
        outputs = caption(w, annotations, (start_id, *ids[:-1]), attention=attention)
        score = log_probability(outputs.logits, ids)
        if score > best[1]:
            best = (ids, score)
    return best

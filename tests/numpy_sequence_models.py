"""An independent NumPy reference of recurrent and convolutional models of translation.

Sources: Cho et al. 2014, arXiv 1406.1078 (2.3 and the appendix); Hochreiter and Schmidhuber 1997
with the forget gate of Gers et al. 2000; Sutskever et al. 2014, "Sequence to Sequence Learning with
Neural Networks"; Bahdanau et al. 2014, arXiv 1409.0473 (appendix A); Luong et al. 2015, "Effective
Approaches to Attention-based Neural Machine Translation" (3.1, dot and bilinear scores); Salimans
and Kingma 2016, "Weight Normalization"; Gehring et al. 2017, arXiv 1705.03122 (section 3), with the
scales of its authors' fairseq.

As in `tests.numpy_reference`: float64, no dropout, no trick, and nothing here knows kbert. One
sentence at a time: no batch axis, no padding, no masks. Arrays come in by name. Without
`target_embedding/embeddings` the source's table serves both sides; without `output/kernel` the
output is the transposed table of the target. The target ids begin with the start token; row t of
the logits is the prediction after the ids 0 to t.

Letters: S source length, T target length, E embedding, D state of a decoder, De of an encoder, A
attention, C channels, P positions, I any input, U any output, Vs and Vt vocabularies.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tests.numpy_reference import Array, dense, float64, softmax

Arrays = Mapping[str, Array]
Ids = Sequence[int]
# What a cell hands on to its next step: (h,) of a GRU, (h, c) of an LSTM, each (D).
State = tuple[Array, ...]
ROOT_HALF = math.sqrt(0.5)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), element by element."""
    return 1.0 / (1.0 + np.exp(-float64(x)))


def maxout(x: Array) -> Array:
    """The larger number of each pair (0, 1), (2, 3), ...: (2E) -> (E)."""
    return np.array([max(x[i], x[i + 1]) for i in range(0, len(x), 2)])


def linear(w: Arrays, name: str, x: Array) -> Array:
    """x `name/kernel` (I, U) + `name/bias` (U): (..., I) -> (..., U)."""
    return dense(x, w[f"{name}/kernel"], w[f"{name}/bias"])


def target_table(w: Arrays) -> Array:
    """The embeddings of the target (Vt, E), which may be those of the source."""
    name = "target_embedding/embeddings"
    return float64(w[name] if name in w else w["source_embedding/embeddings"])


def output_logits(w: Arrays, x: Array) -> Array:
    """x `output/kernel`, or x times the target's table transposed, + `output/bias`: -> (Vt)."""
    kernel = w["output/kernel"] if "output/kernel" in w else target_table(w).T
    return dense(x, kernel, w["output/bias"])


def gru_step(w: Arrays, name: str, x: Array, h: Array, reset_after: bool) -> Array:
    """One step of a GRU (Cho et al., equations 5 to 8): x (I), h (D) -> z h + (1 - z) candidate.

    `name/kernel` (I, 3D), `name/recurrent_kernel` (D, 3D) and `name/bias` (3D) hold update z, reset
    r and candidate side by side. The candidate is tanh(x W + b + (r h) U), or with `reset_after`
    tanh(x W + b + r (h U + `name/recurrent_bias` (D))), as in PyTorch.
    """
    kernel_z, kernel_r, kernel = np.split(float64(w[f"{name}/kernel"]), 3, axis=1)
    from_z, from_r, from_h = np.split(float64(w[f"{name}/recurrent_kernel"]), 3, axis=1)
    bias_z, bias_r, bias = np.split(float64(w[f"{name}/bias"]), 3)
    z = sigmoid(x @ kernel_z + h @ from_z + bias_z)
    r = sigmoid(x @ kernel_r + h @ from_r + bias_r)
    if reset_after:
        remembered = r * (h @ from_h + float64(w[f"{name}/recurrent_bias"]))
    else:
        remembered = (r * h) @ from_h
    return z * h + (1.0 - z) * np.tanh(x @ kernel + bias + remembered)


def lstm_step(w: Arrays, name: str, x: Array, h: Array, c: Array) -> State:
    """One step of an LSTM without peepholes: x (I), h (D), c (D) -> the new h and c.

    `name/kernel` (I, 4D), `name/recurrent_kernel` (D, 4D) and `name/bias` (4D) hold input gate i,
    forget gate f, cell g and output gate o side by side; c' = f c + i tanh(g), h' = o tanh(c').
    """
    sums = linear(w, name, x) + h @ float64(w[f"{name}/recurrent_kernel"])
    i, f, g, o = np.split(sums, 4)
    new_c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(new_c), new_c


def zero_state(w: Arrays, name: str, cell: str) -> State:
    """Zeros: (h,), or (h, c) of an LSTM."""
    zeros = np.zeros(len(w[f"{name}/recurrent_kernel"]))
    return (zeros, zeros) if cell == "lstm" else (zeros,)


def cell_step(w: Arrays, name: str, cell: str, x: Array, state: State) -> State:
    """One step of a "gru", "gru_reset_after" or "lstm": x (I) and a state -> the next state."""
    if cell == "lstm":
        return lstm_step(w, name, x, *state)
    return (gru_step(w, name, x, state[0], {"gru": False, "gru_reset_after": True}[cell]),)


def stack_step(w: Arrays, side: str, cell: str, x: Array, states: list[State]) -> list[State]:
    """One step of `side_0`, `side_1`, ...: each layer reads the new h of the layer below it."""
    new_states = []
    for layer, state in enumerate(states):
        new_states.append(cell_step(w, f"{side}_{layer}", cell, x, state))
        x = new_states[-1][0]
    return new_states


# --- the encoder-decoder without attention ---------------------------------------------------


class RnnOutputs(NamedTuple):
    """Logits (T, Vt), and the state of each decoder layer after T steps: (h,) or (h, c)."""

    logits: Array
    states: list[State]


def rnn(
    w: Arrays,
    source_ids: Ids,
    target_ids: Ids,
    *,
    cell: str,
    context: str,
    num_layers: int,
    reversed_source: bool = False,
) -> RnnOutputs:
    """The model of Sutskever et al. ("initial") or of Cho et al. ("each_step").

    Args:
        w: the arrays; with "each_step" also `context` (D -> D), `initial_l` (D -> D) of each layer
            and `readout` (D + E + D -> 2E).
        source_ids, target_ids: S and T ids.
        cell: "gru", "gru_reset_after" or "lstm".
        context: "initial", the decoder starts in the last states of the encoder and sees nothing
            else of the source; "each_step", a summary c (D) goes into each step and each readout.
        num_layers: of the encoder and of the decoder.
        reversed_source: the source is read from its last token to its first.
    """
    states = [zero_state(w, f"encoder_{layer}", cell) for layer in range(num_layers)]
    for token in reversed(source_ids) if reversed_source else source_ids:
        x = float64(w["source_embedding/embeddings"])[token]
        states = stack_step(w, "encoder", cell, x, states)
    each_step, c = {"initial": False, "each_step": True}[context], np.zeros(0)
    if each_step:
        c = np.tanh(linear(w, "context", states[-1][0]))
        for layer in range(num_layers):
            first = np.tanh(linear(w, f"initial_{layer}", c))
            states[layer] = (first, *zero_state(w, f"decoder_{layer}", cell)[1:])
    logits = []
    for token in target_ids:
        embedded = target_table(w)[token]
        states = stack_step(w, "decoder", cell, np.concatenate([embedded, c]), states)
        top = states[-1][0]
        if each_step:
            top = maxout(linear(w, "readout", np.concatenate([top, embedded, c])))
        logits.append(output_logits(w, top))
    return RnnOutputs(np.stack(logits), states)


# --- attention of Bahdanau et al. ------------------------------------------------------------


def run_cell(w: Arrays, name: str, cell: str, inputs: list[Array]) -> list[Array]:
    """The states h (D) after each of the inputs (I), from zeros."""
    state, outputs = zero_state(w, name, cell), []
    for x in inputs:
        state = cell_step(w, name, cell, x, state)
        outputs.append(state[0])
    return outputs


def bahdanau_annotations(w: Arrays, source_ids: Ids, *, cell: str = "gru") -> Array:
    """z_j = [forward_j; backward_j] of each source token (A.2.1): S ids -> (S, 2De)."""
    embedded = [float64(w["source_embedding/embeddings"])[token] for token in source_ids]
    forward = run_cell(w, "encoder_forward", cell, embedded)
    backward = run_cell(w, "encoder_backward", cell, embedded[::-1])[::-1]
    return np.stack([np.concatenate(pair) for pair in zip(forward, backward)])


def bahdanau_initial_state(w: Arrays, annotations: Array) -> Array:
    """s_0 = tanh(backward_1 `initial/kernel` (De, D) + `initial/bias`): (S, 2De) -> (D)."""
    return np.tanh(linear(w, "initial", np.split(annotations[0], 2)[1]))


def attention_score(w: Arrays, score: str, s: Array, z: Array) -> Array:
    """e_ij of a state s (D) and an annotation z (2De).

    "additive": `attention/score` (A) . tanh(s `attention/query` (D, A) + z `attention/key` (2De, A)
    + `attention/bias` (A)); "bilinear": s . (z `attention/key` (2De, D)); "dot": s . z.
    """
    if score == "dot":
        return s @ z
    key = z @ float64(w["attention/key"])
    if score == "bilinear":
        return s @ key
    if score != "additive":
        raise ValueError(f"`score` must be additive, bilinear or dot. Received: score={score!r}")
    hidden = np.tanh(s @ float64(w["attention/query"]) + key + float64(w["attention/bias"]))
    return hidden @ float64(w["attention/score"])


def bahdanau_step(
    w: Arrays, annotations: Array, state: Array, token: int, *, cell: str, score: str
) -> tuple[Array, Array, Array]:
    """One step of the decoder (A.2.2) from s_{i-1} (D) and y_{i-1}, with the annotations (S, 2De).

    The readout sees the state before the step. `cell` is "gru" or "gru_reset_after", `score`
    "additive", "bilinear" or "dot". Returns logits (Vt), attention (S) and the new state s_i (D).
    """
    attention = softmax(float64([attention_score(w, score, state, z) for z in annotations]))
    context = sum(a * z for a, z in zip(attention, annotations))
    embedded = target_table(w)[token]
    readout = maxout(linear(w, "readout", np.concatenate([state, embedded, context])))
    (new_state,) = cell_step(w, "decoder", cell, np.concatenate([embedded, context]), (state,))
    return output_logits(w, readout), attention, new_state


def bahdanau(
    w: Arrays, source_ids: Ids, target_ids: Ids, *, cell: str = "gru", score: str = "additive"
) -> tuple[Array, Array, Array]:
    """S and T ids -> logits (T, Vt), attention (T, S) and the states s_0 to s_T (T + 1, D)."""
    annotations = bahdanau_annotations(w, source_ids, cell=cell)
    states, steps = [bahdanau_initial_state(w, annotations)], []
    for token in target_ids:
        steps.append(bahdanau_step(w, annotations, states[-1], token, cell=cell, score=score))
        states.append(steps[-1][2])
    logits, attention, _ = zip(*steps)
    return np.stack(logits), np.stack(attention), np.stack(states)


# --- convolutions of Gehring et al. ----------------------------------------------------------


def normalized(w: Arrays, name: str, x: Array) -> Array:
    """x W + `name/bias` (U), column u of W being norm_u direction_u / |direction_u|.

    `name/direction` (I, U), `name/norm` (U): (..., I) -> (..., U).
    """
    direction = float64(w[f"{name}/direction"])
    kernel = float64(w[f"{name}/norm"]) * direction / np.linalg.norm(direction, axis=0)
    return dense(x, kernel, w[f"{name}/bias"])


def embed_with_positions(table: Array, positions: Array, ids: Ids) -> Array:
    """The embeddings of the ids plus those of their positions from 0: (V, E), (P, E) -> (T, E)."""
    return np.stack([float64(table)[i] + float64(positions)[j] for j, i in enumerate(ids)])


def gated_convolution(w: Arrays, name: str, x: Array, width: int, before: int) -> Array:
    """a sigmoid(b) with [a; b] a convolution over `width` positions: (T, C) -> (T, C).

    The window of position i begins at i - before; rows p C to (p + 1) C of `name/direction`
    (width C, 2C) belong to its p-th position; what lies outside of the sentence is zero.
    """
    padded = np.pad(x, ((before, width - 1 - before), (0, 0)))
    outputs = []
    for i in range(len(x)):
        a, b = np.split(normalized(w, name, padded[i : i + width].ravel()), 2)
        outputs.append(a * sigmoid(b))
    return np.stack(outputs)


def convs2s(
    w: Arrays,
    source_ids: Ids,
    target_ids: Ids,
    *,
    num_encoder_layers: int,
    num_decoder_layers: int,
    kernel_width: int,
) -> tuple[Array, list[Array]]:
    """S and T ids -> logits (T, Vt) and the attention (T, S) of each decoder block."""
    table = w["source_embedding/embeddings"]
    e = embed_with_positions(table, w["source_positions/embeddings"], source_ids)
    x = normalized(w, "encoder_input", e)
    for layer in range(num_encoder_layers):
        name = f"encoder_block_{layer}/convolution"
        x = (gated_convolution(w, name, x, kernel_width, (kernel_width - 1) // 2) + x) * ROOT_HALF
    keys = normalized(w, "encoder_output", x)
    values = (keys + e) * ROOT_HALF
    g = embed_with_positions(target_table(w), w["target_positions/embeddings"], target_ids)
    x = normalized(w, "decoder_input", g)
    attention = []
    for layer in range(num_decoder_layers):
        block = f"decoder_block_{layer}"
        h = gated_convolution(w, f"{block}/convolution", x, kernel_width, kernel_width - 1)
        d = (normalized(w, f"{block}/query", h) + g) * ROOT_HALF
        attention.append(softmax(d @ keys.T))
        attended = (attention[-1] @ values) * len(e) * math.sqrt(1.0 / len(e))
        h = (normalized(w, f"{block}/attended", attended) + h) * ROOT_HALF
        x = (h + x) * ROOT_HALF
    return output_logits(w, normalized(w, "decoder_output", x)), attention

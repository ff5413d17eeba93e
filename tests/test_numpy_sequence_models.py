"""The reference itself, held to numbers worked out by hand.

The arithmetic rests on sigmoid(0) = 1/2, sigmoid(log 3) = 3/4, sigmoid(log 4) = 4/5, and on
tanh(log x) = (x^2 - 1) / (x^2 + 1), so that tanh(log 2) = 0.6 and tanh(log 3) = 0.8.
"""

import math

import numpy as np
import pytest

from tests import numpy_sequence_models as models

LOG2, LOG3 = math.log(2.0), math.log(3.0)


def close(actual, expected, tolerance=1e-12):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance)


def half_gru(weights):
    """A GRU of one unit with both gates 1/2 and the candidate tanh(x . weights)."""
    kernel = np.zeros((len(weights), 3))
    kernel[:, 2] = weights
    return {"kernel": kernel, "recurrent_kernel": np.zeros((1, 3)), "bias": np.zeros(3)}


def named(cells):
    """{name: {part: array}} -> {name/part: array}."""
    return {f"{name}/{part}": array for name in cells for part, array in cells[name].items()}


def test_maxout_takes_the_larger_of_neighbours():
    close(models.maxout(np.array([1.0, 2.0, 5.0, -4.0])), [2.0, 5.0])


def two_units(reset_after):
    # x = 1, h = (2, 4), z = (3/4, 1/2), r = (1/2, 3/4): one log 3 half from x and half from a bias,
    # the other half from h and half from a bias. U swaps the units of the candidate, by log 2.
    recurrent = np.zeros((2, 6))
    recurrent[1, 3] = LOG3 / 8
    recurrent[:, 4:] = [[0.0, LOG2], [LOG2, 0.0]]
    w = {
        "cell/kernel": np.array([[LOG3 / 2, 0.0, 0.0, 0.0, 0.0, 0.0]]),
        "cell/recurrent_kernel": recurrent,
        "cell/bias": np.array([LOG3 / 2, 0.0, 0.0, LOG3 / 2, 0.0, 0.0]),
        "cell/recurrent_bias": np.array([2 * LOG2, 0.0]),
    }
    name = "gru_reset_after" if reset_after else "gru"
    return models.cell_step(w, "cell", name, np.ones(1), (np.array([2.0, 4.0]),))[0]


def test_gru_by_hand():
    # r h = (1, 3), swapped (3, 1): candidates tanh(3 log 2) = 63/65 and tanh(log 2) = 3/5.
    close(two_units(False), [0.75 * 2 + 0.25 * 63 / 65, 0.5 * 4 + 0.5 * 3 / 5])


def test_gru_with_the_reset_after_the_product_by_hand():
    # h U + b = (4, 2) + (2, 0) in units of log 2, times r: (3, 1.5). tanh(1.5 log 2) = 7 / 9.
    close(two_units(True), [0.75 * 2 + 0.25 * 63 / 65, 0.5 * 4 + 0.5 * 7 / 9])


def test_lstm_by_hand():
    # i = 1/2, f = 3/4, g = 0.6, o = 4/5: c = 3/4 * 4 + 1/2 * 0.6 = 3.3.
    w = {
        "cell/kernel": np.array([[0.0, LOG3, 0.0, 0.0]]),
        "cell/recurrent_kernel": np.array([[0.0, 0.0, LOG2 / 2, 0.0]]),
        "cell/bias": np.array([0.0, 0.0, 0.0, math.log(4.0)]),
    }
    state = (np.array([2.0]), np.array([4.0]))
    h, c = models.cell_step(w, "cell", "lstm", np.array([1.0]), state)
    close(c, [3.3])
    close(h, [0.8 * math.tanh(3.3)])


# Reading tokens 0 and 1 (log 2 and log 3), the encoder's state goes 0.3, 0.15 + 0.4 = 0.55; reading
# them backwards 0.4, 0.2 + 0.3 = 0.5.
TABLE = {"source_embedding/embeddings": np.array([[LOG2], [LOG3]])}
OUTPUT = {"output/kernel": np.array([[1.0, -1.0]]), "output/bias": np.array([0.5, 0.0])}


@pytest.mark.parametrize("backwards, last", [(False, 0.55), (True, 0.5)])
def test_rnn_that_starts_in_the_last_state_of_the_encoder_by_hand(backwards, last):
    w = TABLE | OUTPUT | named({"encoder_0": half_gru([1.0]), "decoder_0": half_gru([1.0])})
    outputs = models.rnn(
        w, [0, 1], [0, 1], cell="gru", context="initial", num_layers=1, reversed_source=backwards
    )
    first = last / 2 + 0.3
    second = first / 2 + 0.4
    close(outputs.logits, [[first + 0.5, -first], [second + 0.5, -second]])
    close(outputs.states[0][0], [second])


def test_rnn_with_a_table_of_its_own_for_the_target_and_no_output_kernel_by_hand():
    w = TABLE | named({"encoder_0": half_gru([1.0]), "decoder_0": half_gru([1.0])})
    w |= {"target_embedding/embeddings": np.array([[LOG3], [2.0]]), "output/bias": np.zeros(2)}
    logits = models.rnn(w, [0, 1], [0], cell="gru", context="initial", num_layers=1).logits
    close(logits, [[0.675 * LOG3, 0.675 * 2.0]])  # the state is 0.275 + 0.4


def test_rnn_of_two_layers_by_hand():
    # Encoder: layer 0 is 0.3 and layer 1 0.4. Decoder: layer 0 is 0.15 + 0.3, layer 1 0.2 + 0.3.
    cells = {"encoder_0": half_gru([1.0]), "encoder_1": half_gru([LOG3 / 0.3])}
    cells |= {"decoder_0": half_gru([1.0]), "decoder_1": half_gru([LOG2 / 0.45])}
    w = TABLE | OUTPUT | named(cells)
    outputs = models.rnn(w, [0], [0], cell="gru", context="initial", num_layers=2)
    close(outputs.logits, [[1.0, -0.5]])
    close(np.concatenate([h for (h,) in outputs.states]), [0.45, 0.5])


def test_rnn_whose_decoder_sees_a_summary_at_each_step_by_hand():
    # c = tanh(log 2) = 0.6; first state tanh(log 2) = 0.6; the candidate is
    # tanh(log 2 + log 1.5) = 0.8, so the state is 0.7.
    # Readout: max(0.7 + 0.6, log 2 - 1) = 1.3 of state and c, not of the token.
    w = TABLE | OUTPUT
    w |= named({"encoder_0": half_gru([1.0]), "decoder_0": half_gru([1.0, math.log(1.5) / 0.6])})
    w |= {"context/kernel": np.array([[1.0]]), "context/bias": np.array([LOG2 - 0.55])}
    w |= {"initial_0/kernel": np.array([[LOG2]]), "initial_0/bias": np.array([0.4 * LOG2])}
    w["readout/kernel"] = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    w["readout/bias"] = np.array([0.0, -1.0])
    outputs = models.rnn(w, [0, 1], [0], cell="gru", context="each_step", num_layers=1)
    close(outputs.states[0][0], [0.7])
    close(outputs.logits, [[1.8, -1.3]])


def test_rnn_hands_on_the_memory_of_an_lstm_only_from_its_own_encoder_by_hand():
    # Gates 1/2, cell tanh(x): the encoder's memory is 0.3, then the decoder's 0.15 + 0.3 = 0.45.
    # With a summary at each step the memory begins at zero: 0.3; c = tanh(0) = 0 adds nothing.
    cell = {"recurrent_kernel": np.zeros((1, 4)), "bias": np.zeros(4)}
    read = {"kernel": np.array([[0.0, 0.0, 1.0, 0.0]])}
    w = TABLE | OUTPUT | named({"encoder_0": cell | read})
    decoder = named({"decoder_0": cell | read})
    outputs = models.rnn(w | decoder, [0], [0], cell="lstm", context="initial", num_layers=1)
    close(outputs.states[0], [[0.5 * math.tanh(0.45)], [0.45]])
    close(outputs.logits, [[0.5 * math.tanh(0.45) + 0.5, -0.5 * math.tanh(0.45)]])
    nothing = {"kernel": np.zeros((1, 1)), "bias": np.zeros(1)}
    w |= named({"context": nothing, "initial_0": nothing})
    readout = {"kernel": np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]), "bias": np.zeros(2)}
    w |= named({"readout": readout})
    w |= named({"decoder_0": cell | {"kernel": np.vstack([read["kernel"], np.ones((1, 4))])}})
    outputs = models.rnn(w, [0], [0], cell="lstm", context="each_step", num_layers=1)
    close(outputs.states[0], [[0.5 * math.tanh(0.3)], [0.3]])
    close(outputs.logits, [[0.5 * math.tanh(0.3) + 0.5, -0.5 * math.tanh(0.3)]])


def test_bahdanau_by_hand():
    # Annotations: forward 0.3, 0.55, backward 0.5, 0.4. First state: tanh(2 log 2 * 0.5) = 0.6.
    # Scores 5 log 3 * (0.8, 0.6), as the hidden unit gets log 3 and log 2: attention 3/4, 1/4.
    # Context (0.3625, 0.475); the candidate is tanh(log 2 + log 1.5) = 0.8, so the state is 0.7.
    # Readout, from the state before: 0.6 + 0.3625 + 0.475 = 1.4375.
    cells = {"encoder_forward": half_gru([1.0]), "encoder_backward": half_gru([1.0])}
    cells["decoder"] = half_gru([1.0, 0.0, math.log(1.5) / 0.475])
    w = TABLE | OUTPUT | named(cells)
    w |= {"initial/kernel": np.array([[2 * LOG2]]), "initial/bias": np.zeros(1)}
    slope = 10 * math.log(1.5)
    w["attention/key"] = np.array([[0.0], [slope]])
    w["attention/query"] = np.array([[-slope / 1.2]])
    w["attention/bias"] = np.array([LOG3])
    w["attention/score"] = np.array([5 * LOG3])
    w["readout/kernel"] = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    w["readout/bias"] = np.array([0.0, -1.0])
    logits, attention, states = models.bahdanau(w, [0, 1], [0])
    close(models.bahdanau_annotations(w, [0, 1]), [[0.3, 0.5], [0.55, 0.4]])
    close(attention, [[0.75, 0.25]])
    close(states, [[0.6], [0.7]])
    close(logits, [[1.9375, -1.4375]])


def test_dot_and_bilinear_scores_by_hand():
    s, z = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    close(models.attention_score({}, "dot", s, z), 11.0)
    # z `attention/key` = (4, 6).
    key = {"attention/key": np.array([[0.0, 2.0], [1.0, 0.0]])}
    close(models.attention_score(key, "bilinear", s, z), 16.0)
    with pytest.raises(ValueError, match="`score` must be additive, bilinear or dot"):
        models.attention_score(key, "other", s, z)


def test_weight_normalization_by_hand():
    # Columns (3, 4) and (0, 2) of lengths 5 and 2, norms 10 and 3: (6, 8) and (0, 3).
    w = {"map/direction": np.array([[3.0, 0.0], [4.0, 2.0]]), "map/norm": np.array([10.0, 3.0])}
    w["map/bias"] = np.array([0.5, 0.0])
    close(models.normalized(w, "map", np.array([1.0, 1.0])), [14.5, 3.0])


def convolution(name):
    """One channel, window weights 1, 2, 2 (of length 3) and the gate sigmoid(log 3) = 3/4."""
    direction = np.array([[1.0, 1.0], [2.0, 1.0], [2.0, 1.0]])
    parts = {"direction": direction, "norm": np.array([3.0, 0.0]), "bias": np.array([0.0, LOG3])}
    return named({f"{name}/convolution": parts})


def test_convolutions_centred_and_causal_by_hand():
    x = np.array([[1.0], [2.0], [3.0]])
    # Centred windows 0 1 2, 1 2 3, 2 3 0; causal ones 0 0 1, 0 1 2, 1 2 3.
    centred = models.gated_convolution(convolution("a"), "a/convolution", x, 3, 1)
    close(centred[:, 0], [0.75 * 6, 0.75 * 11, 0.75 * 8])
    causal = models.gated_convolution(convolution("a"), "a/convolution", x, 3, 2)
    close(causal[:, 0], [0.75 * 2, 0.75 * 6, 0.75 * 11])


def test_the_window_of_a_convolution_is_laid_out_position_by_position():
    # Two channels, width 2: the row of the kernel for channel 1 of the earlier position is row 1.
    direction = np.ones((4, 4))
    direction[:, 0] = [0.0, 1.0, 0.0, 0.0]
    parts = {"direction": direction, "norm": np.array([1.0, 0, 0, 0]), "bias": np.zeros(4)}
    x = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
    actual = models.gated_convolution(named({"a": parts}), "a", x, 2, 1)
    close(actual, [[0.0, 0.0], [5.0, 0.0], [10.0, 0.0]])


ONE_LAYER = {"num_encoder_layers": 1, "num_decoder_layers": 1, "kernel_width": 3}


def convs2s_weights():
    """One channel, one number an embedding, and every linear map the identity."""
    one = {"direction": np.array([[-2.0]]), "norm": np.array([-1.0]), "bias": np.zeros(1)}
    maps = ("encoder_input", "encoder_output", "decoder_input", "decoder_output")
    maps += ("decoder_block_0/query", "decoder_block_0/attended")
    w = named({name: one for name in maps})
    w |= convolution("encoder_block_0") | convolution("decoder_block_0")
    w["source_embedding/embeddings"] = np.array([[0.5], [1.0]])
    w["source_positions/embeddings"] = np.array([[0.5], [1.0], [7.0]])
    w["target_embedding/embeddings"] = np.array([[0.0], [2.0]])
    w["target_positions/embeddings"] = np.array([[1.0], [1.0], [1.0]])
    return w | OUTPUT


def test_convs2s_by_hand():
    # Source e = (1, 2): windows 6 and 5, gated 4.5 and 3.75, so keys 5.5 and 5.75 times sqrt(1/2).
    # Target g = (1, 3): windows 2 and 8, gated 1.5 and 6, so queries 2.5 and 9 times sqrt(1/2), and
    # the scores are 2.5 * (2.75, 2.875) and 9 * (2.75, 2.875). Two source tokens: times sqrt(2).
    half = math.sqrt(0.5)
    weights = np.array([1 / (1 + math.exp(0.3125)), 1 / (1 + math.exp(1.125))])
    values = (2.75 + half, 2.875 + 2 * half)
    attended = (weights * values[0] + (1 - weights) * values[1]) * math.sqrt(2.0)
    states = (np.array([1.5, 6.0]) + attended) * half
    y = (states + np.array([1.0, 3.0])) * half
    logits, attention = models.convs2s(convs2s_weights(), [0, 1], [0, 1], **ONE_LAYER)
    close(attention[0], np.stack([weights, 1 - weights], axis=1))
    close(logits, np.stack([y + 0.5, -y], axis=1))


def test_convs2s_does_not_see_later_target_tokens():
    whole, _ = models.convs2s(convs2s_weights(), [0, 1, 1], [0, 1, 1], **ONE_LAYER)
    begun, _ = models.convs2s(convs2s_weights(), [0, 1, 1], [0, 1, 0], **ONE_LAYER)
    close(whole[:2], begun[:2])
    np.testing.assert_array_less(0.1, abs(whole[2] - begun[2]))

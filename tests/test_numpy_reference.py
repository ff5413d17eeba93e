"""The reference itself, held to numbers worked out by hand or printed in tables."""

import math

import numpy as np
import pytest

from tests import numpy_reference as reference


def close(actual, expected, tolerance=1e-9):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance)


def test_gelu_of_one_is_the_normal_table():
    # Phi(1) = 0.8413447461 and Phi(-1) = 0.1586552539 in every table of the normal distribution.
    close(reference.gelu([1.0, -1.0, 0.0]), [0.8413447461, -0.1586552539, 0.0], 1e-9)


def test_tanh_gelu_of_one():
    # By hand: sqrt(2/pi) = 0.7978845608, times 1.044715 = 0.8335619689, tanh = 0.6823838,
    # half of 1.6823838 = 0.8411920.
    close(reference.gelu_tanh([1.0]), [0.8411920], 1e-6)


def test_softmax_of_logarithms_are_the_proportions():
    # By hand: exp(log 1, log 2, log 5) = 1, 2, 5 of 8.
    close(reference.softmax(np.log([1.0, 2.0, 5.0])), [0.125, 0.25, 0.625])
    close(reference.log_softmax(np.log([1.0, 2.0, 5.0])), np.log([0.125, 0.25, 0.625]))


def test_causal_and_key_masks():
    expected = [[True, False, False], [True, True, False], [True, True, True]]
    assert reference.causal_mask(3).tolist() == expected
    assert reference.key_mask([[True, False]], 3).tolist() == [[[True, False]] * 3]


def test_attention_by_hand():
    # H = 4, so scores are q.k / 2 = (log 3, 0): probabilities 3/4 and 1/4.
    query = np.array([[[[2 * math.log(3.0), 0.0, 0.0, 0.0]]]])
    key = np.array([[[[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]]])
    value = np.array([[[[4.0, 0, 0, 0], [0, 8.0, 0, 0]]]])
    context, probabilities = reference.scaled_dot_product_attention(query, key, value)
    close(probabilities, [[[[0.75, 0.25]]]])
    close(context, [[[[3.0, 2.0, 0.0, 0.0]]]])


def test_masked_key_is_as_if_it_were_absent_and_no_key_gives_zero():
    draw = np.random.default_rng(0)
    query, key, value = (draw.normal(size=(1, 1, 2, 4)) for _ in range(3))
    mask = np.array([[[True, False], [False, False]]])
    context, probabilities = reference.scaled_dot_product_attention(query, key, value, mask)
    close(probabilities, [[[[1.0, 0.0], [0.0, 0.0]]]])
    close(context[0, 0, 0], value[0, 0, 0])
    close(context[0, 0, 1], 0.0)


def test_multi_head_attention_by_hand():
    # Two heads of size 1, identity matrices. Head 1 sees only key 0 or 1 by score q1 k1, and so on.
    # Scores of head 1: 1 * (log 1, log 3) -> 1/4, 3/4; of head 2: (log 4, log 1) -> 4/5, 1/5.
    eye, zero = np.eye(2), np.zeros(2)
    weights = reference.AttentionWeights(eye, zero, eye, zero, eye, zero, eye, np.array([1.0, 2.0]))
    query = np.array([[[1.0, 1.0]]])
    key = np.log(np.array([[[1.0, 4.0], [3.0, 1.0]]]))
    value = np.array([[[4.0, 10.0], [8.0, 20.0]]])
    output, probabilities = reference.multi_head_attention(query, key, value, weights, 2)
    close(probabilities, [[[[0.25, 0.75]], [[0.8, 0.2]]]])
    close(output, [[[7.0 + 1.0, 12.0 + 2.0]]])


def test_multi_head_attention_with_other_widths_and_a_blind_query():
    draw = np.random.default_rng(1)
    weights = reference.AttentionWeights(
        draw.normal(size=(4, 6)),
        draw.normal(size=6),
        draw.normal(size=(5, 6)),
        draw.normal(size=6),
        draw.normal(size=(3, 6)),
        draw.normal(size=6),
        draw.normal(size=(6, 4)),
        draw.normal(size=4),
    )
    query, key, value = (draw.normal(size=s) for s in [(2, 3, 4), (2, 7, 5), (2, 7, 3)])
    mask = np.ones((2, 3, 7), dtype=bool)
    mask[1, 2] = False
    output, probabilities = reference.multi_head_attention(query, key, value, weights, 2, mask)
    assert output.shape == (2, 3, 4)
    assert probabilities.shape == (2, 2, 3, 7)
    close(output[1, 2], weights.output_bias)


def test_layer_norm_by_hand():
    # Mean 3, biased variance ((-2)^2 + 0 + 2^2 + 0) / 4 = 2; with epsilon 2 the root is 2.
    normed = reference.layer_norm([1.0, 3.0, 5.0, 3.0], [1, 1, 3, 1], [0, 0.5, 0, 0], epsilon=2.0)
    close(normed, [-1.0, 0.5, 3.0, 0.0])


def test_feed_forward_by_hand():
    # relu(2 * (1, -1) + (1, 1)) = (3, 0); times (2, 5) plus 0.5 = 6.5.
    output = reference.feed_forward(
        [[[2.0]]], [[1.0, -1.0]], [1.0, 1.0], [[2.0], [5.0]], [0.5], "relu"
    )
    close(output, [[[6.5]]])


def test_sinusoids_by_hand():
    # D = 4: rates 1 and 1/100.
    expected = [math.sin(2.0), math.cos(2.0), math.sin(0.02), math.cos(0.02)]
    close(reference.sinusoidal_positions(3, 4)[2], expected)
    close(reference.sinusoidal_positions(3, 4)[0], [0.0, 1.0, 0.0, 1.0])
    halves = [math.sin(2.0), math.sin(0.02), math.cos(2.0), math.cos(0.02)]
    close(reference.sinusoidal_positions_in_halves(3, 4)[2], halves)
    # Here the last rate is 1/10000 and not 1/100.
    inclusive = [math.sin(2.0), math.sin(0.0002), math.cos(2.0), math.cos(0.0002)]
    close(reference.sinusoidal_positions_tensor2tensor(3, 4)[2], inclusive)


def test_residuals_by_hand():
    # Post: x + f = (2, 4): mean 3, deviation 1. Pre: x = (1, 5): norm (-1, 1), doubled, added.
    ones, zeros = np.ones(2), np.zeros(2)
    close(reference.post_norm_residual([1.0, 5.0], [1.0, -1.0], ones, zeros, 0.0), [-1.0, 1.0])
    pre = reference.pre_norm_residual([1.0, 5.0], lambda h: 2 * h, ones, zeros, 0.0)
    close(pre, [-1.0, 7.0])


def test_embeddings_by_hand():
    # Sums (1 + 10 + 100, 0) and (2 + 20 + 200, 0); the norm of (a, 0) with a > 0 is (1, -1).
    arrays = {
        "embeddings/token_embedding/embeddings": [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]],
        "embeddings/position_embedding/embeddings": [[10.0, 0.0], [20.0, 0.0]],
        "embeddings/segment_embedding/embeddings": [[100.0, 0.0], [200.0, 0.0]],
        "embeddings/layer_norm/gamma": [1.0, 2.0],
        "embeddings/layer_norm/beta": [0.0, 0.5],
    }
    output = reference.bert_embeddings([[1, 2]], [[0, 1]], arrays, 0.0)
    close(output, [[[1.0, -1.5], [1.0, -1.5]]])


SHAPES = reference.bert_array_shapes(11, 6, 8, 2, 5)


def test_bert_hides_padding_and_counts_its_states():
    arrays = reference.random_arrays(SHAPES)
    short = reference.bert(arrays, [[1, 2, 3]], 2, 3)
    mask = [[True, True, True, False, False]]
    padded = reference.bert(arrays, [[1, 2, 3, 9, 10]], 2, 3, padding_mask=mask)
    close(padded.sequence_output[:, :3], short.sequence_output)
    close(padded.pooled_output, short.pooled_output)
    assert len(short.hidden_states) == 3
    assert [p.shape for p in short.attention_probabilities] == [(1, 3, 3, 3)] * 2
    close(short.attention_probabilities[1].sum(-1), 1.0)
    assert np.abs(short.pooled_output).max() < 1.0


def test_a_causal_bert_is_the_plain_one_on_each_beginning():
    arrays = reference.random_arrays(reference.bert_array_shapes(7, 4, 6, 2, 5), seed=1)
    ids = np.array([[3, 1, 4, 1, 5]])
    found = reference.bert(arrays, ids, 1, 2, causal=True)
    for length in range(1, 6):
        # One block: the last position of a beginning sees all of it, and it alone.
        plain = reference.bert(arrays, ids[:, :length], 1, 2)
        close(found.sequence_output[:, length - 1], plain.sequence_output[:, -1])
    real = np.array([[True, True, True, False, False]])
    pooled = reference.bert(arrays, ids, 2, 2, padding_mask=real, causal=True).pooled_output
    close(pooled, reference.bert(arrays, ids[:, :3], 2, 2, causal=True).pooled_output)


def test_masked_tokens_by_hand():
    # W = diag(3, 1), b = (0, 1): (1, 0) becomes (3, 1), of mean 2 and variance 1: (1, -1).
    head = {
        "transform/kernel": np.diag([3.0, 1.0]),
        "transform/bias": np.array([0.0, 1.0]),
        "layer_norm/gamma": np.ones(2),
        "layer_norm/beta": np.zeros(2),
        "output/bias": np.array([0.0, 0.5, 10.0]),
    }
    table = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    logits = reference.masked_token_logits([[1.0, 0.0]], head, table, "relu", 0.0)
    close(logits, [[1.0, -2.0 + 0.5, 0.0 + 10.0]])


def test_pre_norm_block_without_weights_is_the_identity():
    arrays = {name: np.zeros(shape) for name, shape in SHAPES.items()}
    x = np.random.default_rng(2).normal(size=(1, 4, 6))
    output, probabilities = reference.encoder_block(x, arrays, "encoder_block_0", 2, pre_norm=True)
    close(output, x)
    close(probabilities, 0.25)


def test_parameter_count_of_bert_base():
    # 109,482,240 parameters is the published size of BERT-base uncased with its pooler.
    shapes = reference.bert_array_shapes(30522, 768, 3072, 12, 512)
    assert sum(math.prod(shape) for shape in shapes.values()) == 109_482_240


def test_cross_entropy_by_hand():
    logits = np.log([[1.0, 3.0], [1.0, 1.0]])
    close(reference.cross_entropy(logits, [1, 0]), [math.log(4 / 3), math.log(2)])
    close(reference.cross_entropy(logits, [1, 0], [5.0, 2.0])[0], 2 * math.log(4 / 3))
    soft = reference.cross_entropy(logits, [[0.5, 0.5], [0.0, 1.0]])
    close(soft, [0.5 * math.log(4) + 0.5 * math.log(4 / 3), math.log(2)])
    close(reference.smooth_labels([1], 4, 0.1), [[0.025, 0.925, 0.025, 0.025]])


@pytest.mark.parametrize(
    "step, rate",
    [(0, 0.0), (5, 0.5), (10, 1.0), (55, 0.5), (100, 0.0), (101, 0.0)],
)
def test_schedule_by_hand(step, rate):
    close(reference.warmup_then_linear_decay(step, 1.0, 10, 100), rate)


def test_inverse_square_root_meets_at_the_end_of_warmup():
    # D = 64: 1/8; warm-up 4: step 4 gives 1/8 * 1/2, step 16 gives 1/8 * 1/4, step 1 a quarter.
    rates = [reference.inverse_square_root_rate(step, 64, 4) for step in (1, 4, 16)]
    close(rates, [1 / 64, 1 / 16, 1 / 32])


def test_clipping_by_hand():
    # Norm of (3, 4) and (12) is 13; at limit 6.5 all are halved; at 13 nothing changes.
    gradients = [np.array([3.0, 4.0]), np.array([12.0])]
    close(reference.global_norm(gradients), 13.0)
    close(np.concatenate(reference.clip_by_global_norm(gradients, 6.5)), [1.5, 2.0, 6.0])
    close(np.concatenate(reference.clip_by_global_norm(gradients, 13.0)), [3.0, 4.0, 12.0])


def test_adamw_by_hand():
    # With bias correction the first step is g / |g| whatever the betas: 1 - 0.1 (1 + 0.5 * 1).
    optimizer = reference.AdamW(beta_1=0.5, beta_2=0.75, epsilon=0.0, decay=0.5)
    parameters = {"kernel": np.array([1.0]), "bias": np.array([1.0])}
    gradients = {"kernel": np.array([2.0]), "bias": np.array([2.0])}
    parameters = optimizer.update(parameters, gradients, 0.1, undecayed=["bias"])
    close([parameters["kernel"][0], parameters["bias"][0]], [0.85, 0.9])
    # Second step, g = -2: m = 0.5 * 1 - 1 = -0.5, over 0.75 = -2/3; v = 4 (1 - 0.75^2), over the
    # same = 4, root 2; so the direction is -1/3.
    gradients = {"kernel": np.array([-2.0]), "bias": np.array([-2.0])}
    parameters = optimizer.update(parameters, gradients, 0.1, undecayed=["bias"])
    close(parameters["kernel"], 0.85 - 0.1 * (-1 / 3 + 0.5 * 0.85))
    close(parameters["bias"], 0.9 + 0.1 / 3)


def test_albert_with_a_projection_of_one_is_bert():
    shapes = reference.bert_array_shapes(7, 6, 8, 1, 4)
    arrays = reference.random_arrays(shapes, seed=3)
    tokens, segments = np.array([[1, 2, 3]]), np.array([[0, 1, 1]])
    real = np.array([[True, True, False]])
    ones = {"embedding_projection/kernel": np.eye(6), "embedding_projection/bias": np.zeros(6)}
    found = reference.albert({**arrays, **ones}, tokens, [0, 0], 2, segments, real, "gelu")
    copied = {n.replace("block_0", "block_1"): array for n, array in arrays.items()}
    expected = reference.bert({**arrays, **copied}, tokens, 2, 2, segments, real)
    for one, other in zip(found.hidden_states, expected.hidden_states, strict=True):
        close(one, other)
    close(found.pooled_output, expected.pooled_output)

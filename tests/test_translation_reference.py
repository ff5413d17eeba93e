"""The reference of the Transformer, held to numbers by hand and to what the papers say of it."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tests import numpy_reference as plain
from tests import translation_reference as reference
from tests.translation_reference import Architecture, BertMemory

POST = Architecture(num_heads=2, encoder_layers=2, decoder_layers=2)
PRE = replace(POST, norm="pre", activation="gelu", positions="halves")
ONE = Architecture(num_heads=1, encoder_layers=1, decoder_layers=1, epsilon=0.0)
SOURCE = np.array([[3, 1, 4, 1], [5, 9, 0, 0]])
REAL = np.array([[True, True, True, True], [True, True, False, False]])
TARGET = np.array([[2, 7, 1], [2, 8, 1]])


def close(actual, expected, tolerance=1e-9):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance)


def arrays_of(norm="post", seed=0, **kwargs):
    shapes = reference.translation_array_shapes(10, 6, 8, 2, 2, norm=norm, **kwargs)
    return reference.random_translation_arrays(shapes, seed)


def decoder_by_hand():
    """Uniform self-attention over what is visible; a memory of width 3 that is projected."""
    shapes = reference.decoder_block_shapes("d", 2, 1, bert_dim=4, memory_width=3)
    arrays = {name: np.zeros(shape) for name, shape in shapes.items()}
    arrays |= {name: np.ones(shape) for name, shape in shapes.items() if name.endswith("gamma")}
    return arrays | {
        "d/self_attention/qkv/kernel": np.concatenate([np.zeros((2, 4)), np.eye(2)], axis=1),
        "d/self_attention/output/kernel": np.eye(2),
        "d/cross_attention/key_value/kernel": np.array(
            [[0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 1, 1]], float
        ),
        "d/cross_attention/output/kernel": np.diag([1.0, -1.0]),
        "d/cross_attention/output/bias": np.array([0.0, 0.5]),
        "d/bert_attention/output/bias": np.array([2.0, 1.0]),
        "d/feed_forward/intermediate/kernel": np.array([[2.0], [1.0]]),
        "d/feed_forward/output/kernel": np.array([[1.0, -1.0]]),
        "d/feed_forward/output/bias": np.array([0.0, 10.0]),
    }


X = np.array([[[3.0, 1.0], [1.0, 5.0]]])
MEMORY = np.array([[[1.0, 2.0, 3.0], [9.0, 9.0, 9.0]]])
FIRST_ONLY = np.array([[True, False]])


def test_pre_norm_decoder_block_by_hand():
    # Norms of two numbers are (1, -1) or (-1, 1). Self-attention: position 0 sees (1, -1), so
    # (4, 0); position 1 the mean of (1, -1) and (-1, 1), so (1, 5). The memory's first key gives
    # (1 + 3, 2 + 3) = (4, 5), by the output (4, -4.5): (8, -4.5) and (5, 0.5). Both are (1, -1)
    # in the last norm: relu(2 - 1) = 1, then (1, -1 + 10).
    pre = replace(ONE, norm="pre")
    found = reference.decoder_block(X, MEMORY, decoder_by_hand(), "d", pre, FIRST_ONLY)
    close(found, [[[9.0, 4.5], [6.0, 9.5]]])


def test_post_norm_decoder_block_by_hand():
    # Self-attention: (3, 1) + (3, 1) -> (1, -1); (1, 5) + (2, 3) -> (-1, 1). Memory: (5, -5.5) and
    # (3, -3.5) -> both (1, -1), by gains and offsets (2, 1) (0, 3): (2, 2). Feed-forward:
    # relu(4 + 2) = 6, then (6, 4): (8, 6) -> (1, -1).
    arrays = decoder_by_hand()
    arrays["d/cross_attention_residual/layer_norm/gamma"] = np.array([2.0, 1.0])
    arrays["d/cross_attention_residual/layer_norm/beta"] = np.array([0.0, 3.0])
    arrays["d/feed_forward_residual/layer_norm/gamma"] = np.array([5.0, 7.0])
    found = reference.decoder_block(X, MEMORY, arrays, "d", ONE, FIRST_ONLY)
    close(found, [[[5.0, -7.0], [5.0, -7.0]]])


@pytest.mark.parametrize(
    "weights, added",
    [((1.0, 0.0), (4.0, -4.5)), ((0.0, 1.0), (2.0, 1.0)), ((0.5, 0.5), (3.0, -1.75))],
)
def test_fused_decoder_block_by_hand(weights, added):
    # As above, (4, 0) and (1, 5) before the sum of both attentions; the one to BERT gives (2, 1).
    # The last norm is (1, -1) where the first number is larger, else (-1, 1): relu(-2 + 1) = 0.
    pre, bert = replace(ONE, norm="pre"), BertMemory(np.ones((1, 5, 4)), None, weights)
    found = reference.decoder_block(X, MEMORY, decoder_by_hand(), "d", pre, FIRST_ONLY, bert=bert)
    sums = np.array([[4.0, 0.0], [1.0, 5.0]]) + added
    fed = [[1.0, 9.0] if first > second else [0.0, 10.0] for first, second in sums]
    close(found[0], sums + fed)


def test_fused_encoder_block_by_hand():
    # Without kernels each attention gives its bias: (2, 0) and (0, 4), halves (1, 2).
    shapes = reference.encoder_block_shapes("e", 2, 1, bert_dim=3)
    arrays = {name: np.zeros(shape) for name, shape in shapes.items()}
    arrays["e/attention/output/bias"] = np.array([2.0, 0.0])
    arrays["e/bert_attention/output/bias"] = np.array([0.0, 4.0])
    pre, bert = replace(ONE, norm="pre"), BertMemory(np.ones((1, 4, 3)))
    found = reference.encoder_block(X, arrays, "e", pre, bert=bert)
    close(found, X + [1.0, 2.0])


def test_keys_come_before_values_and_heads_side_by_side():
    # Two heads of size 1. Query (1, 1). Keys log(1, 3) in head 1 and log(4, 1) in head 2; values
    # (4, 10) and (8, 20): 4 / 4 + 8 * 3 / 4 = 7 and 10 * 4 / 5 + 20 / 5 = 12.
    arrays = {
        "a/query/kernel": np.eye(2),
        "a/query/bias": np.zeros(2),
        "a/key_value/kernel": np.eye(4),
        "a/key_value/bias": np.zeros(4),
        "a/output/kernel": np.eye(2),
        "a/output/bias": np.array([1.0, 2.0]),
    }
    memory = np.array([[[0.0, math.log(4), 4.0, 10.0], [math.log(3), 0.0, 8.0, 20.0]]])
    found = reference.attend_to_memory(np.ones((1, 1, 2)), memory, arrays, "a", 2, None)
    close(found, [[[8.0, 14.0]]])


def test_encoder_block_is_the_one_of_bert():
    shapes = reference.encoder_block_shapes("e", 6, 8)
    arrays = reference.random_translation_arrays(shapes)
    x = np.random.default_rng(1).normal(size=(2, 4, 6))
    for architecture in (POST, PRE):
        expected, _ = plain.encoder_block(
            x,
            arrays,
            "e",
            2,
            plain.key_mask(REAL, 4),
            architecture.activation,
            architecture.epsilon,
            architecture.norm == "pre",
        )
        close(reference.encoder_block(x, arrays, "e", architecture, REAL), expected)


def test_embeddings_by_hand():
    # D = 4: twice the row, and the waves of position 1: rates 1 and 1/100.
    table = np.arange(12.0).reshape(3, 4)
    found = reference.embedded([[2, 1]], table, ONE)
    close(found[0, 0], [16.0, 18.0 + 1, 20.0, 22.0 + 1])
    waves = [math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)]
    close(found[0, 1], np.array([8.0, 10.0, 12.0, 14.0]) + waves)
    halves = reference.embedded([[2, 1]], table, replace(ONE, positions="halves"))
    close(halves[0, 1], np.array([8.0, 10.0, 12.0, 14.0]) + np.array(waves)[[0, 2, 1, 3]])
    learned = reference.embedded([[2, 1]], table, replace(ONE, positions="learned"), 10 * table)
    close(learned[0, 1], [48.0, 60.0, 72.0, 84.0])


@pytest.mark.parametrize("architecture", [POST, PRE], ids=["post", "pre"])
def test_the_future_and_the_padding_are_not_seen(architecture):
    arrays = arrays_of(architecture.norm)
    logits = reference.transformer(arrays, SOURCE, TARGET, architecture, REAL)
    assert logits.shape == (2, 3, 10)
    # Position 1 does not know what comes at position 2.
    other = reference.transformer(
        arrays, SOURCE, np.array([[2, 7, 9], [2, 8, 4]]), architecture, REAL
    )
    close(other[:, :2], logits[:, :2])
    assert np.abs(other[:, 2] - logits[:, 2]).max() > 1e-3
    # The second sentence without its padding; and with other ids in it.
    alone = reference.transformer(arrays, SOURCE[1:, :2], TARGET[1:], architecture)
    close(alone, logits[1:])
    changed = np.where(REAL, SOURCE, 6)
    close(reference.transformer(arrays, changed, TARGET, architecture, REAL), logits)
    # It would be seen without the mask.
    assert np.abs(reference.transformer(arrays, SOURCE, TARGET, architecture) - logits).max() > 1e-3


def test_padding_of_the_target_is_not_seen():
    arrays = arrays_of()
    padded = np.array([[0, 2, 7], [2, 8, 1]])
    mask = np.array([[False, True, True], [True, True, True]])
    found = reference.transformer(arrays, SOURCE, padded, POST, REAL, mask)
    others = reference.transformer(
        arrays, SOURCE, np.array([[9, 2, 7], [2, 8, 1]]), POST, REAL, mask
    )
    close(found[0, 1:], others[0, 1:])
    close(found[1], reference.transformer(arrays, SOURCE, TARGET, POST, REAL)[1])
    assert np.isfinite(found).all()  # the first query of the first row sees nothing at all


def test_a_memory_that_is_all_padding_gives_the_output_bias():
    arrays = arrays_of()
    memory = np.random.default_rng(3).normal(size=(2, 4, 6))
    mask = np.array([[False] * 4, [True] * 4])
    found = reference.decode(arrays, TARGET, memory, POST, mask)
    # The same as a decoder whose memory has no values.
    silent = {
        name: np.zeros_like(array) if "/cross_attention/key_value/" in name else array
        for name, array in arrays.items()
    }
    close(found[0], reference.decode(silent, TARGET, memory, POST)[0])
    close(found[1], reference.decode(arrays, TARGET, memory, POST)[1])


def test_pre_norm_stacks_without_weights_are_the_last_norm_of_the_embeddings():
    arrays = arrays_of("pre")
    for name in arrays:
        if "_block_" in name:
            arrays[name] = np.zeros_like(arrays[name])
    embedded = reference.embedded(SOURCE, arrays["source_embedding/embeddings"], PRE)
    gamma, beta = arrays["encoder_norm/gamma"], arrays["encoder_norm/beta"]
    close(reference.encode(arrays, SOURCE, PRE), plain.layer_norm(embedded, gamma, beta))
    embedded = reference.embedded(TARGET, arrays["source_embedding/embeddings"], PRE)
    gamma, beta = arrays["decoder_norm/gamma"], arrays["decoder_norm/beta"]
    states = plain.layer_norm(embedded, gamma, beta)
    logits = reference.decode(arrays, TARGET, np.zeros((2, 4, 6)), PRE)
    close(logits, states @ arrays["source_embedding/embeddings"].T)


def test_tied_and_untied_outputs():
    shared = arrays_of()
    table = shared["source_embedding/embeddings"]
    tied = reference.transformer(shared, SOURCE, TARGET, POST)
    copied = shared | {"target_embedding/embeddings": table, "output/kernel": table.T}
    close(reference.transformer(copied, SOURCE, TARGET, POST), tied)
    biased = shared | {"output/bias": np.arange(10.0)}
    close(reference.transformer(biased, SOURCE, TARGET, POST), tied + np.arange(10.0))
    own = arrays_of(target_vocabulary_size=12, tied_output=False, output_bias=True)
    assert own["output/kernel"].shape == (6, 12)
    assert reference.transformer(own, SOURCE, TARGET, POST).shape == (2, 3, 12)
    half = arrays_of(target_vocabulary_size=12)
    assert reference.transformer(half, SOURCE, TARGET, POST).shape == (2, 3, 12)


BERT_STATES = np.random.default_rng(7).normal(size=(2, 5, 7))
BERT_REAL = np.array([[True] * 5, [True, True, True, False, False]])


@pytest.mark.parametrize("architecture", [POST, PRE], ids=["post", "pre"])
def test_without_berts_share_the_fused_model_is_the_plain_one(architecture):
    arrays = arrays_of(architecture.norm, bert_dim=7)
    bert = BertMemory(BERT_STATES, BERT_REAL, (1.0, 0.0))
    expected = reference.transformer(arrays, SOURCE, TARGET, architecture, REAL)
    close(reference.transformer(arrays, SOURCE, TARGET, architecture, REAL, bert=bert), expected)
    bert = BertMemory(BERT_STATES, BERT_REAL)
    found = reference.transformer(arrays, SOURCE, TARGET, architecture, REAL, bert=bert)
    assert np.abs(found - expected).max() > 1e-3
    # BERT's padding is not seen either.
    other = BertMemory(np.where(BERT_REAL[..., None], BERT_STATES, 9.0), BERT_REAL)
    close(reference.transformer(arrays, SOURCE, TARGET, architecture, REAL, bert=other), found)


@pytest.mark.parametrize("weights", [(0.5, 0.5), (0.0, 1.0)])
def test_a_bert_attention_that_copies_its_sibling_changes_nothing(weights):
    # Both attentions see the same query; here also the same keys and the same weights.
    shapes = reference.decoder_block_shapes("d", 6, 8, bert_dim=6)
    arrays = reference.random_translation_arrays(shapes)
    for name in list(arrays):
        if "/cross_attention/" in name:
            arrays[name.replace("cross_attention", "bert_attention")] = arrays[name]
    draw = np.random.default_rng(2)
    x, memory = draw.normal(size=(2, 3, 6)), draw.normal(size=(2, 4, 6))
    for architecture in (POST, PRE):
        expected = reference.decoder_block(x, memory, arrays, "d", architecture, REAL)
        bert = BertMemory(memory, REAL, weights)
        found = reference.decoder_block(x, memory, arrays, "d", architecture, REAL, bert=bert)
        close(found, expected)


@pytest.mark.parametrize(
    "draw, rate, weights",
    [
        (0.49, 1.0, (1.0, 0.0)),
        (0.51, 1.0, (0.0, 1.0)),
        (0.24, 0.5, (1.0, 0.0)),
        (0.25, 0.5, (0.5, 0.5)),
        (0.75, 0.5, (0.5, 0.5)),
        (0.76, 0.5, (0.0, 1.0)),
        (0.0, 0.0, (0.5, 0.5)),
        (0.999, 0.0, (0.5, 0.5)),
    ],
)
def test_drop_net_by_hand(draw, rate, weights):
    assert reference.drop_net_weights(draw, rate) == weights


def test_parameter_counts():
    # By arithmetic from the sizes of the paper (Vaswani et al., table 3): V 37,000, one table.
    # Encoder block 4 (d d + d) + 2 d I + I + d + 2 (2 d); decoder block 4 (d d + d) + 2 d more.
    base = reference.translation_array_shapes(37_000, 512, 2048, 6, 6)
    assert reference.count_parameters(base) == 63_082_496
    big = reference.translation_array_shapes(37_000, 1024, 4096, 6, 6)
    assert reference.count_parameters(big) == 214_245_376
    # A fused attention adds 2 (d d + d) + 2 (768 d + d).
    assert reference.count_parameters(reference.cross_attention_shapes("a", 512, 768)) == 1_312_768
    fused = reference.translation_array_shapes(37_000, 512, 2048, 6, 6, bert_dim=768)
    assert reference.count_parameters(fused) == 63_082_496 + 12 * 1_312_768
    # Norms at both ends, an output of its own with a bias, and a table of its own.
    pre = reference.translation_array_shapes(
        10, 6, 8, 2, 2, target_vocabulary_size=12, tied_output=False, output_bias=True, norm="pre"
    )
    tied = reference.translation_array_shapes(10, 6, 8, 2, 2)
    extra = 4 * 6 + 2 * 12 * 6 + 12
    assert reference.count_parameters(pre) == reference.count_parameters(tied) + extra


def test_an_empty_batch():
    arrays = arrays_of("pre", bert_dim=7)
    bert = BertMemory(BERT_STATES[:0], BERT_REAL[:0])
    found = reference.transformer(arrays, SOURCE[:0], TARGET[:0], PRE, REAL[:0], bert=bert)
    assert found.shape == (0, 3, 10)

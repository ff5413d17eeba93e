"""The reference of adapters itself: by hand, and by what must be equal."""

import math

import numpy as np
import pytest

from tests import numpy_adapters as adapters
from tests import numpy_reference as reference

# The epsilon of a norm moves its output by half of 1e-12 of itself and more where it varies less.
NORMED = 1e-11
B, T, D, INNER, HEADS, M, LAYERS = 2, 3, 8, 12, 2, 4, 2
WIDTHS = {
    "query": (D, D),
    "key": (D, D),
    "value": (D, D),
    "attention_output": (D, D),
    "intermediate": (D, INNER),
    "output": (INNER, D),
}
LOG3 = math.log(3.0)
SETTINGS = adapters.Settings(num_heads=HEADS, bottleneck_activation="relu")
DRAW = np.random.default_rng(5)
X, H = DRAW.normal(size=(2, B, T, D))
NORM = {"gamma": DRAW.normal(1.0, 0.3, D), "beta": DRAW.normal(0.0, 0.3, D)}
MASK = np.array([[True, True, False], [True, True, True]])


def close(actual, expected, tolerance=1e-12):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance)


def block(seed):
    shapes = {f"{layer}/kernel": shape for layer, shape in WIDTHS.items()}
    shapes |= {f"{layer}/bias": shape[1:] for layer, shape in WIDTHS.items()}
    norms = ("attention_norm", "output_norm")
    shapes |= {f"{norm}/{part}": (D,) for norm in norms for part in ("gamma", "beta")}
    return reference.random_arrays(shapes, seed)


def bottleneck(seed):
    shapes = {"down/kernel": (D, M), "down/bias": (M,), "up/kernel": (M, D), "up/bias": (D,)}
    return reference.random_arrays(shapes, seed)


def silent(seed):
    """A bottleneck whose up-projection is zero."""
    return bottleneck(seed) | {"up/kernel": np.zeros((M, D)), "up/bias": np.zeros(D)}


def prefixed(prefix, weights):
    return {f"{prefix}/{name}": array for name, array in weights.items()}


def fusion(bottlenecks, seed=30, **replaced):
    shapes = {f"{part}/kernel": (D, D) for part in ("query", "key", "value")}
    weights = reference.random_arrays(shapes | {"query/bias": (D,), "key/bias": (D,)}, seed)
    for n, adapter in enumerate(bottlenecks):
        weights |= prefixed(f"adapter_{n}", adapter)
    return weights | replaced


def lora(layers, rank, seed):
    shapes = {f"lora/{layer}/a": (WIDTHS[layer][0], rank) for layer in layers}
    shapes |= {f"lora/{layer}/b": (rank, WIDTHS[layer][1]) for layer in layers}
    return reference.random_arrays(shapes, seed)


BLOCKS = [block(10 + i) for i in range(LAYERS)]


def encode(own, settings=SETTINGS, blocks=BLOCKS):
    return adapters.adapted_encoder(X, blocks, settings, own, MASK)


def plain():
    """The encoder of `numpy_reference`, with the same weights under the names of its own."""
    named = {}
    for i, weights in enumerate(BLOCKS):
        name = f"encoder_block_{i}"
        for part in ("kernel", "bias"):
            qkv = [weights[f"{layer}/{part}"] for layer in ("query", "key", "value")]
            named[f"{name}/attention/qkv/{part}"] = np.concatenate(qkv, axis=-1)
            named[f"{name}/attention/output/{part}"] = weights[f"attention_output/{part}"]
            for layer in ("intermediate", "output"):
                named[f"{name}/feed_forward/{layer}/{part}"] = weights[f"{layer}/{part}"]
        for part in ("gamma", "beta"):
            norm = f"{name}/attention_residual/layer_norm/{part}"
            named[norm] = weights[f"attention_norm/{part}"]
            norm = f"{name}/feed_forward_residual/layer_norm/{part}"
            named[norm] = weights[f"output_norm/{part}"]
    states, mask = [X], reference.key_mask(MASK, T)
    for i in range(LAYERS):
        name = f"encoder_block_{i}"
        states.append(reference.encoder_block(states[-1], named, name, HEADS, mask)[0])
    return states


def test_bottleneck_by_hand():
    # Down: 2 + 1 = 3 and -2 - 1 = -3. ReLU: 3 and 0. Up: 3 (1, 2) + (10, 20), x itself not added.
    weights = {
        "down/kernel": np.array([[1.0, -1.0], [1.0, -1.0]]),
        "down/bias": np.zeros(2),
        "up/kernel": np.array([[1.0, 2.0], [100.0, 100.0]]),
        "up/bias": np.array([10.0, 20.0]),
    }
    close(adapters.bottleneck(np.array([2.0, 1.0]), weights, "relu"), [13.0, 26.0])


@pytest.mark.parametrize(
    "name, x, expected",
    [
        # Phi(1) = (1 + erf(1 / sqrt 2)) / 2 = 0.8413447460685429...
        ("gelu", 1.0, 0.8413447460685429),
        ("relu", -2.0, 0.0),
        # sigmoid(log 3) = 3 / 4.
        ("silu", LOG3, 0.75 * LOG3),
        ("swish", -LOG3, -0.25 * LOG3),
        # tanh(log 2) = (4 - 1) / (4 + 1).
        ("tanh", math.log(2.0), 0.6),
    ],
)
def test_activations_by_hand(name, x, expected):
    close(adapters.ACTIVATIONS[name](np.array([x])), [expected])


def test_houlsby_by_hand():
    # x = (1, 0), h = (1, 4): bottleneck relu(1 + 4) (1, 0) = (5, 0). Sum (7, 4): normed (1, -1).
    weights = {
        "down/kernel": np.ones((2, 1)),
        "down/bias": np.zeros(1),
        "up/kernel": np.array([[1.0, 0.0]]),
        "up/bias": np.zeros(2),
        "norm/gamma": np.array([2.0, 3.0]),
        "norm/beta": np.array([10.0, 20.0]),
    }
    x, h = np.array([1.0, 0.0]), np.array([1.0, 4.0])
    other = {"gamma": np.ones(2), "beta": np.zeros(2)}
    close(adapters.houlsby(x, h, weights, other, "relu"), [12.0, 17.0], NORMED)
    own_norm = {n: array for n, array in weights.items() if not n.startswith("norm")}
    close(adapters.houlsby(x, h, own_norm, other, "relu"), [1.0, -1.0], NORMED)


def test_pfeiffer_by_hand():
    # h + x = (2, 4), a = (-1, 1). Bottleneck relu(1) (5, 0): sum (7, 4), normed (1, -1).
    weights = {
        "down/kernel": np.array([[0.0], [1.0]]),
        "down/bias": np.zeros(1),
        "up/kernel": np.array([[5.0, 0.0]]),
        "up/bias": np.zeros(2),
    }
    norm = {"gamma": np.ones(2), "beta": np.zeros(2)}
    x, h = np.array([1.0, 0.0]), np.array([1.0, 4.0])
    close(adapters.pfeiffer(x, h, weights, norm, "relu"), [1.0, -1.0], NORMED)


def test_without_adapters_it_is_the_plain_encoder():
    for own in (None, [{}, {}]):
        close(encode(own), plain())


def test_silent_adapters_change_nothing():
    houlsby = [
        prefixed("houlsby_attention", silent(40 + i)) | prefixed("houlsby_output", silent(50 + i))
        for i in range(LAYERS)
    ]
    pfeiffer = [prefixed("pfeiffer", silent(40 + i)) for i in range(LAYERS)]
    fused = [prefixed("fusion", fusion([silent(40 + i), silent(50)])) for i in range(LAYERS)]
    for own in (houlsby, pfeiffer, fused):
        close(encode(own), plain())
    expected = reference.layer_norm(H + X, NORM["gamma"], NORM["beta"])
    close(adapters.pfeiffer(X, H, silent(40), NORM, "gelu"), expected)


def test_adapters_of_one_block_leave_the_blocks_before_it():
    states = encode([{}, prefixed("pfeiffer", bottleneck(40))])
    close(states[:2], plain()[:2])
    assert np.abs(states[2] - plain()[2]).max() > 0.1


def test_houlsby_places():
    """In the block, each adapter works on its own sublayer's dense output, with its own norm."""
    own = prefixed("houlsby_attention", bottleneck(40) | prefixed("norm", NORM))
    own |= prefixed("houlsby_output", bottleneck(41))
    weights, mask = BLOCKS[0], reference.key_mask(MASK, T)
    names = [f"{n}/{part}" for n in ("query", "key", "value") for part in ("kernel", "bias")]
    attention = reference.AttentionWeights(
        *(weights[name] for name in names),
        weights["attention_output/kernel"],
        weights["attention_output/bias"],
    )
    h = reference.multi_head_attention(X, X, X, attention, HEADS, mask)[0]
    x = adapters.houlsby(X, h, bottleneck(40), NORM, "relu")
    names = [f"{n}/{part}" for n in ("intermediate", "output") for part in ("kernel", "bias")]
    h = reference.feed_forward(x, *(weights[name] for name in names))
    norm = {part: weights[f"output_norm/{part}"] for part in ("gamma", "beta")}
    expected = adapters.houlsby(x, h, bottleneck(41), norm, "relu")
    close(encode([own, {}])[1], expected)


def test_one_kind_of_bottleneck_a_block():
    own = prefixed("pfeiffer", bottleneck(40)) | prefixed("houlsby_attention", bottleneck(41))
    with pytest.raises(ValueError, match="one kind"):
        encode([own, {}])


def test_lora_by_hand():
    # x W + b = 3 + 1; x A = 3 (1, 2); (3, 6) . (1, 1) = 9; alpha / r = 4 / 2.
    weights = {"a": np.array([[1.0, 2.0]]), "b": np.ones((2, 1))}
    y = adapters.lora_dense(np.array([3.0]), np.eye(1), np.ones(1), weights, 4.0)
    close(y, [22.0])


@pytest.mark.parametrize("layer", adapters.LORA_LAYERS)
def test_lora_merges(layer):
    own = [lora([layer], 2, 60 + i) for i in range(LAYERS)]
    settings = adapters.Settings(num_heads=HEADS, lora_alpha=3.0)
    merged = []
    for weights, adapter in zip(BLOCKS, own, strict=True):
        name = f"{layer}/kernel"
        parts = adapters.under(adapter, f"lora/{layer}")
        merged.append(
            weights | {name: adapters.lora_merged_kernel(weights[name], parts, settings.lora_alpha)}
        )
    states = encode(own, settings)
    close(states, encode(None, settings, merged))
    assert np.abs(states[-1] - plain()[-1]).max() > 1e-3


def test_lora_goes_with_a_bottleneck():
    houlsby = prefixed("houlsby_output", bottleneck(40))
    both = lora(["output"], 2, 60) | houlsby
    parts = adapters.under(both, "lora/output")
    kernel = adapters.lora_merged_kernel(BLOCKS[0]["output/kernel"], parts, 8.0)
    merged = [BLOCKS[0] | {"output/kernel": kernel}, BLOCKS[1]]
    close(encode([both, {}]), encode([houlsby, {}], blocks=merged))


def test_fusion_weights_by_hand():
    # q = (log 2, 0) + (0, 1). Keys of u_n + (0, 5): products log 2 + 5 and 3 log 2 + 5: 1 to 4.
    weights = {
        "query/kernel": np.diag([math.log(2.0), 0.0]),
        "query/bias": np.array([0.0, 1.0]),
        "key/kernel": np.eye(2),
        "key/bias": np.array([0.0, 5.0]),
    }
    outputs = [np.array([1.0, 0.0]), np.array([3.0, 0.0])]
    close(adapters.fusion_weights(np.array([1.0, 7.0]), outputs, weights), [0.2, 0.8])


def test_fusion_weights_sum_to_one_and_differ_by_token():
    outputs = [adapters.bottleneck(X, bottleneck(40 + n), "relu") for n in range(3)]
    alphas = adapters.fusion_weights(X, outputs, fusion([]))
    assert alphas.shape == (B, T, 3) and (alphas > 0).all()
    close(alphas.sum(axis=-1), np.ones((B, T)))
    assert np.ptp(alphas[..., 0]) > 0.01
    close(adapters.fusion_weights(X, outputs[:1], fusion([])), np.ones((B, T, 1)))


def test_fusion_by_hand():
    # h + x = (1, 1, 3, 3), a = (-1, -1, 1, 1), u_0 = (4, 0, 0, 0), u_1 = (0, 8, 0, 0) = their keys.
    # The query (0, log 3 / 8, 0, 0), half of it a bias, gives 1/4 and 3/4: (1, 6, 0, 0) W_v.
    weights = {"key/kernel": np.eye(4), "key/bias": np.zeros(4)}
    weights |= {name: np.zeros((4, 4)) for name in ("query/kernel", "value/kernel")}
    weights["query/bias"] = np.array([0.0, LOG3 / 16, 0.0, 0.0])
    weights["query/kernel"][2, 1] = LOG3 / 16
    weights["value/kernel"][0, 2], weights["value/kernel"][1, 0] = 1.0, 0.5
    for n, bias in enumerate(([4.0, 0.0, 0.0, 0.0], [0.0, 8.0, 0.0, 0.0])):
        zeros = {"down/kernel": np.zeros((4, 1)), "up/kernel": np.zeros((1, 4))}
        zeros |= {"down/bias": np.zeros(1), "up/bias": np.array(bias)}
        weights |= prefixed(f"adapter_{n}", zeros)
    norm = {"gamma": np.ones(4), "beta": np.zeros(4)}
    x, h = np.array([1.0, 0.0, 1.0, 0.0]), np.array([0.0, 1.0, 2.0, 3.0])
    # (3, 0, 1, 0) + (1, 1, 3, 3) = (4, 1, 4, 3): less the mean 3, by the deviation sqrt(6 / 4).
    normed = np.array([1.0, -2.0, 1.0, 0.0]) / math.sqrt(1.5)
    close(adapters.adapter_fusion(x, h, weights, norm, "relu"), normed, NORMED)


@pytest.mark.parametrize("count", [1, 3])
def test_fusion_of_equal_adapters_is_the_adapter(count):
    expected = adapters.pfeiffer(X, H, bottleneck(40), NORM, "gelu")
    weights = fusion([bottleneck(40)] * count, **{"value/kernel": np.eye(D)})
    close(adapters.adapter_fusion(X, H, weights, NORM, "gelu"), expected)
    del weights["value/kernel"]
    close(adapters.adapter_fusion(X, H, weights, NORM, "gelu"), expected)


def test_what_does_not_change_a_fusion():
    """The order of the adapters; the key's bias, which adds the same to each score of a token."""
    one, other = bottleneck(40), bottleneck(41)
    there = adapters.adapter_fusion(X, H, fusion([one, other]), NORM, "relu")
    for equal in (fusion([other, one]), fusion([one, other], **{"key/bias": np.ones(D)})):
        close(adapters.adapter_fusion(X, H, equal, NORM, "relu"), there)


def test_fusion_regularization_by_hand():
    # 3^2 + 1 + 2^2 for the first, nothing for the identity.
    kernels = [np.array([[4.0, 1.0], [0.0, -1.0]]), np.eye(2)]
    close(adapters.fusion_regularization(kernels), 0.14)

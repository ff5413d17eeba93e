"""The weights of a fusion's adapters for each token: by the NumPy reference, and by hand."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from kbert.models.albert import Albert
from kbert.models.bert import Bert
from tests import numpy_adapters as reference
from tests.models.adapters.test_adaptable import (
    NAMES,
    adapted,
    expected_states,
    fused,
    fusion_arrays,
)
from tests.small_bert import INPUTS, MASK, TOKENS, small_bert


def found_weights(model: Bert, inputs: Any = INPUTS) -> list[np.ndarray]:
    return [np.asarray(weights) for weights in model.fusion_weights(inputs)]


def test_numbers(monkeypatch):
    model, expected = fused(), []
    original = reference.fusion_weights

    def noted(*arguments: Any) -> np.ndarray:
        expected.append(original(*arguments))
        return expected[-1]

    monkeypatch.setattr(reference, "fusion_weights", noted)
    arrays = [fusion_arrays(model, layer) for layer in range(2)]
    expected_states(model, arrays, bottleneck_activation="tanh")
    found = found_weights(model)
    assert [layer.shape for layer in found] == [(4, 6, 3)] * 2
    for layer, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(layer[MASK], wanted[MASK], atol=2e-5)
        np.testing.assert_allclose(layer.sum(axis=-1), 1.0, atol=1e-6)
        assert np.ptp(layer[MASK][:, 0]) > 0.1  # tokens differ


def listening(choices: list[int | None]) -> Bert:
    """A fusion whose layers ask one adapter alone, by its number, or all alike."""
    model = fused()
    for layer, choice in enumerate(choices):
        for number, name in enumerate(NAMES):
            up = model.adapters.parts[name].blocks[layer].bottleneck.up
            up.kernel.assign(np.zeros(up.kernel.shape))
            up.bias.assign(np.full(12, 100.0 if number == choice else 0.0))
        fusion = model.adapters.fusions["+".join(NAMES)].blocks[layer]
        fusion.key.kernel.assign(np.eye(12))
        fusion.query.kernel.assign(np.zeros((12, 12)))
        fusion.query.bias.assign(np.ones(12))  # a score is the sum of what an adapter gives
    return model


def test_an_adapter_with_a_large_key_has_all_of_the_weight():
    first, second = found_weights(listening([2, 0]), {"token_ids": TOKENS})
    np.testing.assert_array_equal(first, np.broadcast_to([0.0, 0.0, 1.0], (4, 6, 3)))
    np.testing.assert_array_equal(second, np.broadcast_to([1.0, 0.0, 0.0], (4, 6, 3)))
    first, _ = found_weights(listening([None, 1]))
    np.testing.assert_allclose(first, np.full((4, 6, 3), 1 / 3), rtol=1e-6)


def test_real_tokens_do_not_see_the_padding():
    model = fused()
    alone = {name: column[:1, :4] for name, column in INPUTS.items()}
    for padded, one in zip(found_weights(model), found_weights(model, alone)):
        np.testing.assert_allclose(padded[:1, :4], one, atol=1e-5)


def test_in_a_graph_of_any_length():
    model = fused()
    specs = {name: tf.TensorSpec((None, None), one.dtype) for name, one in INPUTS.items()}
    graph = tf.function(lambda inputs: model.fusion_weights(inputs), input_signature=[specs])
    found = graph({name: tf.constant(one) for name, one in INPUTS.items()})
    for layer, wanted in zip(found, found_weights(model), strict=True):
        np.testing.assert_allclose(layer.numpy()[MASK], wanted[MASK], atol=1e-5)


def test_it_is_without_dropout_and_leaves_the_model_as_it_is():
    model = fused()
    before = np.asarray(model(INPUTS)["sequence_output"])
    for one, two in zip(found_weights(model), found_weights(model)):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(model(INPUTS)["sequence_output"], before)
    assert all(adapter.seen is None for _, adapter in model._stack(INPUTS))


def test_layers_that_share_a_block_have_weights_of_their_own():
    model = Albert(23, 12, 3, 3, 20, 6, initializer_range=0.3)
    for name in ("one", "two"):
        model.add_adapter(name)
    model.add_adapter_fusion(["one", "two"])
    model.set_active_adapters(["one", "two"])
    found = found_weights(model)
    assert [layer.shape for layer in found] == [(4, 6, 2)] * 3


@pytest.mark.parametrize("kind", ["pfeiffer", None])
def test_without_a_fusion(kind):
    model = small_bert() if kind is None else adapted(kind)
    active = "none" if kind is None else "one"
    message = f"`active_adapters` must be those of a fusion, .* Received: {active}$"
    with pytest.raises(ValueError, match=message):
        model.fusion_weights(INPUTS)
    with pytest.raises(ValueError, match="here input_ids is `token_ids`"):
        fused().fusion_weights({"input_ids": TOKENS})

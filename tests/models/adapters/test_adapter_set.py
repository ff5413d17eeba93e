"""The container of adapters; what an encoder does with it is in test_adaptable.py."""

import numpy as np
import pytest

from kbert.layers.adapters.block_adapters import HoulsbyAdapter, PfeifferAdapter
from kbert.layers.adapters.configs import LoraConfig, PfeifferConfig
from kbert.layers.adapters.fusion import FusedAdapters
from kbert.layers.adapters.low_rank import LoraAdapter
from tests.small_bert import small_bert


def test_a_part_for_each_block():
    model = small_bert(dtype="mixed_bfloat16", layer_norm_epsilon=1e-6)
    kinds = {"houlsby": HoulsbyAdapter, "pfeiffer": PfeifferAdapter, "lora": LoraAdapter}
    for name, kind in kinds.items():
        model.add_adapter(name, name)
        parts = model.adapters.parts[name].blocks
        assert [type(part) for part in parts] == [kind, kind]
        assert {part.dtype_policy.name for part in parts} == {"mixed_bfloat16"}
        assert {v.path.split("/")[1] for part in parts for v in part.weights} == {"adapters"}
    assert model.adapters.parts["houlsby"].blocks[0].epsilon == 1e-6
    assert model.adapters.parts["pfeiffer"].blocks[0].adapter_dim == 1  # 12 / 16, at least 1


def test_what_blocks_are_handed():
    model = small_bert()
    adapters = model.adapters
    assert adapters.of_blocks() == []
    for name in ("a", "b"):
        model.add_adapter(name, PfeifferConfig(2))
    model.add_adapter_fusion(["b", "a"])
    model.set_active_adapters("a")
    assert adapters.of_blocks() == adapters.parts["a"].blocks
    model.set_active_adapters(["b", "a"])
    for i, fused in enumerate(adapters.of_blocks()):
        assert isinstance(fused, FusedAdapters)
        assert fused.adapters == [adapters.parts["b"].blocks[i], adapters.parts["a"].blocks[i]]
        assert fused.fusion is adapters.fusions["b+a"].blocks[i] and fused.seen is None
    seen = []
    assert all(fused.seen is seen for fused in adapters.of_blocks(seen))


def test_the_state_makes_the_same_set():
    model = small_bert()
    assert model.adapters.state() == {}
    model.add_adapter("a", PfeifferConfig(2))
    model.add_adapter("b", PfeifferConfig(3))
    model.add_adapter("c", LoraConfig(2))
    model.add_adapter_fusion(["a", "b"], 0.5)
    model.train_adapter(["a", "b"])
    other = small_bert()
    other.adapters.restore(model.adapters.state(), other)
    assert other.adapters.state() == model.adapters.state()
    shapes = [{v.path: tuple(v.shape) for v in one.adapters.weights} for one in (model, other)]
    assert shapes[0] == shapes[1] and len(shapes[0]) == 2 * (4 + 4 + 2 + 5)
    assert other.adapters.fusions["a+b"].blocks[0].regularization == 0.5


def test_what_is_deleted_is_gone():
    model = small_bert()
    before = {v.path for v in model.weights}
    for name in ("a", "b"):
        model.add_adapter(name, PfeifferConfig(2))
    model.add_adapter_fusion(["a", "b"])
    model.delete_adapter("a")
    left = {v.path for v in model.weights} - before
    assert len(left) == 2 * 4 and all("/adapters/b/" in path for path in left)
    assert list(model.adapters.fusions) == []
    model.add_adapter("a", "lora")  # the name is free
    model.set_active_adapters("a")
    inputs = {"token_ids": np.ones((1, 3), "int32")}
    plain = small_bert()(inputs)["sequence_output"]
    np.testing.assert_array_equal(model(inputs)["sequence_output"], plain)


def test_without_the_adapter_that_was_trained_the_encoder_trains():
    """Its name would be in the configuration, and no adapter of it."""
    everything = len(small_bert().trainable_variables)
    for trained in ("a", ["a", "b"]):
        model = small_bert()
        for name in ("a", "b"):
            model.add_adapter(name, PfeifferConfig(2))
        model.add_adapter_fusion(["a", "b"])
        model.train_adapter(trained)
        model.set_active_adapters(None)
        model.delete_adapter("a")
        assert model.adapters.trained == ()
        assert len(model.trainable_variables) == everything + 2 * 4  # and adapter "b"
        model.add_adapter("c", PfeifferConfig(2))
        again = type(model).from_config(model.get_config())
        assert again.adapter_names == ["b", "c"]


def test_names_that_are_none():
    model = small_bert()
    for take in (model.set_active_adapters, model.train_adapter):
        with pytest.raises(ValueError, match="^`names` must be a name, several in .* Received: 3$"):
            take(3)
    with pytest.raises(TypeError, match="^`name_or_directory` must be a folder or .*: None$"):
        model.load_adapter(None)

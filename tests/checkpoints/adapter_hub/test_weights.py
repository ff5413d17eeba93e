"""Tensors of AdapterHub's adapters by kbert's paths."""

import numpy as np
import pytest
from safetensors.numpy import save_file

from kbert.checkpoints.adapter_hub.weights import (
    HubTensors,
    bottleneck_arrays,
    fusion_arrays,
    lora_arrays,
)
from kbert.checkpoints.arrays.checkpoint_files import open_safetensors

LORA = {"kind": "lora", "rank": 2, "targets": ["query", "value"]}
PFEIFFER = {"kind": "pfeiffer", "adapter_dim": 2}


def numbers(*shape):
    return np.arange(np.prod(shape), dtype="float32").reshape(shape)


def read(tmp_path, tensors, function, config, architecture="bert"):
    file = tmp_path / "adapter.safetensors"
    save_file(tensors, file)
    with open_safetensors(file) as files:
        made = HubTensors(file, files, architecture)
        return function(made, "one", *([config] if config else []), 3)


def lora_tensors(prefix="", layers=2):
    found = {}
    for i in range(layers):
        for j, name in enumerate(("query", "value")):
            module = f"{prefix}encoder.layer.{i}.attention.self.{name}.loras.one"
            found[f"{module}.lora_A"] = numbers(2, 3) + 100 * i + 10 * j
            found[f"{module}.lora_B"] = numbers(3, 2) - 100 * i - 10 * j
    return found


@pytest.mark.parametrize("prefix", ["", "bert."])
def test_lora(prefix, tmp_path):
    arrays, inner = read(tmp_path, lora_tensors(prefix), lora_arrays, LORA)
    paths = {f"layer_{i}/qkv/{part}" for i in (0, 1) for part in ("down", "up")}
    assert set(arrays) == paths and inner is None
    down = [[100, 103, 110, 113], [101, 104, 111, 114], [102, 105, 112, 115]]
    np.testing.assert_array_equal(arrays["layer_1/qkv/down"], down)
    up = [[[0, 2, 4], [1, 3, 5]], [[-10, -8, -6], [-9, -7, -5]]]
    np.testing.assert_array_equal(arrays["layer_0/qkv/up"], up)


@pytest.mark.parametrize("targets", [["intermediate"], ["output"], ["intermediate", "output"]])
def test_lora_says_the_inner_width(targets, tmp_path):
    shapes = {"intermediate": ((2, 3), (5, 2)), "output": ((2, 5), (3, 2))}
    modules = {"intermediate": "ffn.lin1", "output": "ffn.lin2"}
    tensors = {
        f"transformer.layer.0.{modules[one]}.loras.one.lora_{letter}": numbers(*shape)
        for one in targets
        for letter, shape in zip("AB", shapes[one])
    }
    config = {**LORA, "targets": targets}
    arrays, inner = read(tmp_path, tensors, lora_arrays, config, "distilbert")
    assert inner == 5
    assert {path: array.shape for path, array in arrays.items()} == {
        f"layer_0/{one}/{part}": shape
        for one in targets
        for part, shape in zip(("down", "up"), (shapes[one][0][::-1], (1, *shapes[one][1][::-1])))
    }


def pfeiffer_tensors(layers=1, dtype="float32"):
    shapes = {"adapter_down.0.weight": (2, 3), "adapter_down.0.bias": (2,)}
    shapes |= {"adapter_up.weight": (3, 2), "adapter_up.bias": (3,)}
    return {
        f"encoder.layer.{i}.output.adapters.one.{name}": numbers(*shape).astype(dtype)
        for i in range(layers)
        for name, shape in shapes.items()
    }


def test_bottlenecks(tmp_path):
    arrays = read(tmp_path, pfeiffer_tensors(), bottleneck_arrays, PFEIFFER)
    expected = {"down/kernel": [[0, 3], [1, 4], [2, 5]], "down/bias": [0, 1]}
    expected |= {"up/kernel": [[0, 2, 4], [1, 3, 5]], "up/bias": [0, 1, 2]}
    assert set(arrays) == {f"layer_0/bottleneck/{name}" for name in expected}
    for name, array in expected.items():
        np.testing.assert_array_equal(arrays[f"layer_0/bottleneck/{name}"], array)


def test_a_fusion(tmp_path):
    tensors = {}
    for part in ("query", "key", "value"):
        module = f"encoder.layer.0.output.adapter_fusion_layer.one.{part}"
        tensors[f"{module}.weight"] = numbers(3, 3)
        if part != "value":
            tensors[f"{module}.bias"] = numbers(3)
    arrays = read(tmp_path, tensors, fusion_arrays, None)
    paths = ("query/kernel", "query/bias", "key/kernel", "key/bias", "value")
    assert set(arrays) == {f"layer_0/{path}" for path in paths}
    np.testing.assert_array_equal(arrays["layer_0/value"], numbers(3, 3).T)


def without(tensors, name):
    return {key: array for key, array in tensors.items() if name not in key}


UP = "encoder.layer.0.output.adapters.one.adapter_up"


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        (
            without(pfeiffer_tensors(2), "1.output.adapters.one.adapter_up.bias"),
            "another shape: encoder.layer.1.output.adapters.one.adapter_up.bias (expected (3,), "
            "found none); left over: none",
        ),
        (
            {**pfeiffer_tensors(), f"{UP}.weight": numbers(3, 4)},
            f"another shape: {UP}.weight (expected (3, 2), found (3, 4)); left over: none",
        ),
        (
            {**pfeiffer_tensors(), "encoder.layer.0.output.adapters.one.gate.bias": numbers(1)},
            "shape: none; left over: encoder.layer.0.output.adapters.one.gate.bias",
        ),
        (
            without(pfeiffer_tensors(2), "layer.0."),  # the first layer was left out
            "left over: encoder.layer.1.output.adapters.one.adapter_down.0.bias, encoder.layer.1",
        ),
        ({"a": numbers(1)}, "in each layer. Not there or of another shape: none; left over: a"),
        (lora_tensors(), "left over: encoder.layer.0.attention.self.query.loras.one.lora_A, "),
        (pfeiffer_tensors(5), None),
        (
            {name.replace(".one.", ".other."): one for name, one in pfeiffer_tensors(3).items()},
            " and 4 more; left over: ",
        ),
    ],
)
def test_other_tensors_than_those_of_the_settings(tensors, message, tmp_path):
    if message is None:
        assert len(read(tmp_path, tensors, bottleneck_arrays, PFEIFFER)) == 20
        return
    with pytest.raises(ValueError) as error:
        read(tmp_path, tensors, bottleneck_arrays, PFEIFFER)
    begin = f"`{tmp_path / 'adapter.safetensors'}` must hold the weights of its settings"
    assert str(error.value).startswith(begin) and message in str(error.value)


def test_numbers_of_other_precisions(tmp_path):
    arrays = read(tmp_path, pfeiffer_tensors(dtype="float16"), bottleneck_arrays, PFEIFFER)
    assert {str(array.dtype) for array in arrays.values()} == {"float16"}
    quantized = pfeiffer_tensors(dtype="int8")
    with pytest.raises(ValueError, match="quantized weights cannot be read. Received: dtype=I8"):
        read(tmp_path, quantized, bottleneck_arrays, PFEIFFER)

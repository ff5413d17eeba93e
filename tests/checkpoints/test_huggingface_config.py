"""What reading refuses is tested in test_huggingface.py, through the whole reader."""

from typing import Any

import pytest

from kbert.checkpoints.huggingface_config import (
    config_from_huggingface,
    config_to_huggingface,
    set_labels,
)
from tests.checkpoints.synthetic_bert import CONFIG, HF_CONFIG


def test_both_ways() -> None:
    assert config_from_huggingface(HF_CONFIG, "x") == CONFIG
    raw = config_to_huggingface(CONFIG, {}, "BertModel", "float32")
    assert raw == HF_CONFIG | {"torch_dtype": "float32"}


@pytest.mark.parametrize(
    ("theirs", "ours", "written"),
    [
        ("gelu", "gelu", "gelu"),
        ("gelu_python", "gelu", "gelu"),
        ("gelu_new", "gelu_approximate", "gelu_new"),
        ("gelu_pytorch_tanh", "gelu_approximate", "gelu_new"),
        ("relu", "relu", "relu"),
        ("swish", "silu", "silu"),
        ("tanh", "tanh", "tanh"),
    ],
)
def test_activations(theirs: str, ours: str, written: str) -> None:
    config = config_from_huggingface(HF_CONFIG | {"hidden_act": theirs}, "x")
    assert config["activation"] == ours
    assert config_to_huggingface(config, {}, "BertModel", "x")["hidden_act"] == written
    # The source's own word stays where it means the same.
    raw = config_to_huggingface(config, {"hidden_act": theirs}, "BertModel", "x")
    assert raw["hidden_act"] == theirs
    raw = config_to_huggingface(config, {"hidden_act": "linear"}, "BertModel", "x")
    assert raw["hidden_act"] == written


def test_an_activation_that_transformers_lacks() -> None:
    with pytest.raises(ValueError, match="one that transformers has: gelu, .*activation='elu'"):
        config_to_huggingface(CONFIG | {"activation": "elu"}, {}, "BertModel", "float32")


def test_the_source_keeps_its_fields_and_takes_new_values() -> None:
    source = {"vocab_size": 12, "pad_token_id": 3, "dtype": "float16"}
    raw = config_to_huggingface(CONFIG, source, "BertModel", "float32")
    assert (raw["vocab_size"], raw["pad_token_id"], raw["dtype"]) == (11, 3, "float32")
    assert "torch_dtype" not in raw
    assert source["vocab_size"] == 12


@pytest.mark.parametrize("written", [None, False, True])
def test_causal_encoders(written: bool | None) -> None:
    raw = HF_CONFIG if written is None else HF_CONFIG | {"is_decoder": written}
    config = config_from_huggingface(raw, "x")
    assert config == (CONFIG | {"causal": True} if written else CONFIG)
    for causal in (False, True):
        again = config_to_huggingface(CONFIG | {"causal": causal}, raw, "BertModel", "float32")
        assert again.get("is_decoder", False) is causal
        assert config_from_huggingface(again, "x").get("causal", False) is causal
    with pytest.raises(ValueError, match="x: `causal` must be true or false. Received: causal='n"):
        config_from_huggingface(HF_CONFIG | {"is_decoder": "no"}, "x")


def test_old_files_without_a_model_type() -> None:
    raw = {key: value for key, value in HF_CONFIG.items() if key != "model_type"}
    assert config_from_huggingface(raw, "x") == CONFIG
    with pytest.raises(ValueError, match="Received: model_type=None, architectures=\\['GPT2'\\]"):
        config_from_huggingface(raw | {"architectures": ["GPT2"]}, "x")


@pytest.mark.parametrize(
    ("raw", "count", "expected"),
    [
        ({}, 2, None),
        ({}, 1, {"0": "LABEL_0"}),
        ({"id2label": {"0": "a", "1": "b"}}, 2, {"0": "a", "1": "b"}),
        ({"id2label": {"0": "a"}, "label2id": {"a": 0}}, 2, {"0": "LABEL_0", "1": "LABEL_1"}),
    ],
)
def test_labels(raw: dict[str, Any], count: int, expected: dict[str, str] | None) -> None:
    set_labels(raw, count)
    assert raw.get("id2label") == expected
    if expected:
        assert raw["label2id"] == {label: int(index) for index, label in expected.items()}

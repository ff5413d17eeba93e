"""Folders of AdapterHub's library without their encoders."""

import json

import pytest

from kbert.checkpoints.adapter_hub.folder import read_hub_adapter, read_hub_fusion
from tests.adapterhub_golden import extracted


@pytest.fixture
def bert(tmp_path):
    return extracted(tmp_path) / "bert"


def test_an_adapter(bert):
    found = read_hub_adapter(bert / "houlsby", "bert")
    assert found.name == "houlsby" and not found.own_norms
    assert found.config == {"kind": "houlsby", "adapter_dim": 2, "activation": "silu"}
    assert found.encoder == {"hidden_dim": 8, "num_layers": 2}
    assert {path.split("/")[1] for path in found.arrays} == {"attention", "feed_forward"}
    found = read_hub_adapter(bert / "lora-keys", "bert")
    config = {"kind": "lora", "rank": 1, "alpha": 4.0, "targets": ["key", "output"]}
    assert found.config == config
    assert found.encoder == {"hidden_dim": 8, "num_layers": 2, "intermediate_dim": 12}


def test_a_fusion(bert):
    found = read_hub_fusion(bert / "fusion", "bert")
    assert found.names == ["pfeiffer", "gelu"]
    assert found.encoder == {"hidden_dim": 8, "num_layers": 2}
    assert {array.shape for array in found.arrays.values()} == {(8, 8), (8,)}


def test_pickles_are_never_opened(bert):
    file = bert / "lora" / "adapter.safetensors"
    file.rename(file.with_name("pytorch_adapter.bin"))
    with pytest.raises(ValueError) as error:
        read_hub_adapter(bert / "lora", "bert")
    message = str(error.value)
    assert "weights as adapter.safetensors. Received: pytorch_adapter.bin, which is a Py" in message
    assert message.endswith("call `model.save_adapter(folder, name, use_safetensors=True)`")
    file.with_name("pytorch_adapter.bin").unlink()
    with pytest.raises(FileNotFoundError, match="must hold adapter.safetensors. It has no weight"):
        read_hub_adapter(bert / "lora", "bert")
    file = bert / "fusion" / "model_adapter_fusion.safetensors"
    file.rename(file.with_name("pytorch_model_adapter_fusion.bin"))
    with pytest.raises(ValueError, match="save_adapter_fusion.folder, names, use_safetensors=True"):
        read_hub_fusion(bert / "fusion", "bert")


def test_a_damaged_file(bert):
    file = bert / "lora" / "adapter.safetensors"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(ValueError, match="lora/adapter.safetensors` must be a whole safetensors"):
        read_hub_adapter(bert / "lora", "bert")
    (bert / "lora" / "adapter_config.json").write_text("{")
    with pytest.raises(ValueError, match="lora/adapter_config.json` must be a JSON file"):
        read_hub_adapter(bert / "lora", "bert")


def test_encoders_of_other_architectures(bert):
    message = "must be read into an encoder of bert, roberta, electra, distilbert. Received: albert"
    with pytest.raises(ValueError, match=message):
        read_hub_adapter(bert / "lora", "albert")
    with pytest.raises(ValueError, match="`model_type` must be 'roberta', .*model_type='bert'"):
        read_hub_fusion(bert / "fusion", "roberta")


def test_weights_under_another_name(bert):
    file = bert / "pfeiffer" / "adapter_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "name": "other"}))
    with pytest.raises(ValueError, match="adapters.other.adapter_down.0.weight .expected .1, 8."):
        read_hub_adapter(bert / "pfeiffer", "bert")

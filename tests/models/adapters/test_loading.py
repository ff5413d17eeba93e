"""Adapters that AdapterHub's library wrote: the numbers are its own, to float32."""

import json
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from kbert.architectures import encoder_class
from kbert.models.adapters.loading import load_adapter, load_fusion, sizes_of
from kbert.models.albert import Albert
from kbert.models.bert import Bert
from tests.adapterhub_golden import extracted, inputs_of

ADAPTERS = {
    "bert": ("pfeiffer", "gelu", "houlsby", "lora", "lora-everywhere", "lora-keys"),
    "roberta": ("pfeiffer", "houlsby", "lora"),
    "distilbert": ("pfeiffer", "houlsby", "lora"),
    "electra": ("pfeiffer", "houlsby", "lora"),
}
SIZES = {"hidden_dim": 8, "num_layers": 2, "intermediate_dim": 12}


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    return extracted(tmp_path_factory.mktemp("hub"))


def encoder_of(hub: Any, kind: str) -> Any:
    return encoder_class(kind).from_pretrained(hub / kind / "encoder")


def check(encoder: Any, hub: Any, kind: str, name: str) -> None:
    """All hidden states of real tokens are the library's, which an adapter changes."""
    inputs = inputs_of(hub)
    expected = load_file(hub / kind / "states.safetensors")
    mask = inputs["padding_mask"]
    for found, wanted in zip(encoder.hidden_states(inputs), expected[name], strict=True):
        np.testing.assert_allclose(np.asarray(found)[mask], wanted[mask], atol=1e-5)
    if name != "plain":
        assert np.abs(expected[name] - expected["plain"])[-1][mask].max() > 0.3


@pytest.mark.parametrize("kind", ADAPTERS)
def test_numbers(kind, hub):
    encoder = encoder_of(hub, kind)
    check(encoder, hub, kind, "plain")
    for name in ADAPTERS[kind]:
        assert load_adapter(encoder, hub / kind / name, None) == name
        assert encoder.active_adapters == []
        encoder.set_active_adapters(name)
        check(encoder, hub, kind, name)
        encoder.set_active_adapters(None)
    check(encoder, hub, kind, "plain")


def test_numbers_of_a_fusion(hub):
    encoder = encoder_of(hub, "bert")
    with pytest.raises(ValueError, match="must be adapters that are there: none. Received: 'pfei"):
        load_fusion(encoder, hub / "bert" / "fusion", None)
    for name, ours in (("gelu", "gelu"), ("pfeiffer", "one")):
        load_adapter(encoder, hub / "bert" / name, ours)
    with pytest.raises(ValueError, match="`names` must be those of 2 adapters, pfeiffer, gelu in"):
        load_fusion(encoder, hub / "bert" / "fusion", ["one"])
    assert encoder.load_adapter_fusion(hub / "bert" / "fusion", ["one", "gelu"]) == ["one", "gelu"]
    encoder.set_active_adapters(["one", "gelu"])
    check(encoder, hub, "bert", "fusion")
    with pytest.raises(ValueError, match="`names` must be a new fusion"):
        load_fusion(encoder, hub / "bert" / "fusion", ["one", "gelu"])


def test_merged_and_written_anew(hub, tmp_path):
    encoder = encoder_of(hub, "bert")
    for name in ADAPTERS["bert"]:
        encoder.load_adapter(hub / "bert" / name)
        encoder.save_adapter(tmp_path / name, name)
    other = encoder_of(hub, "bert")
    for name in ADAPTERS["bert"]:
        other.load_adapter(tmp_path / name)
        other.set_active_adapters(name)
        check(other, hub, "bert", name)
    encoder.set_active_adapters("lora-everywhere")
    encoder.merge_adapter("lora-everywhere")
    check(encoder, hub, "bert", "lora-everywhere")


def test_it_trains_and_the_norms_of_the_encoder_stay(hub):
    encoder = encoder_of(hub, "bert")
    encoder.load_adapter(hub / "bert" / "houlsby", "ours")
    encoder.train_adapter("ours")
    assert any("/ours/" in v.path and "gamma" in v.path for v in encoder.trainable_variables)
    norm = encoder.layer_blocks[1].attention_residual.layer_norm
    own = encoder.adapters.variables_of("ours")["layer_1/attention_layer_norm/gamma"]
    np.testing.assert_array_equal(own, norm.gamma)
    assert own is not norm.gamma


@pytest.mark.parametrize("size", SIZES)
def test_encoders_of_other_sizes(size, hub):
    sizes = {**SIZES, size: SIZES[size] * 2}
    other = Bert(11, num_heads=2, max_sequence_length=10, **sizes)
    assert sizes_of(other) == sizes
    message = f"adapter for .*'{size}': {sizes[size]}.* Received: one for .*'{size}': {SIZES[size]}"
    with pytest.raises(ValueError, match=message):
        other.load_adapter(hub / "bert" / "lora-everywhere")
    if size == "intermediate_dim":
        assert other.load_adapter(hub / "bert" / "houlsby") == "houlsby"
        return
    with pytest.raises(ValueError, match=message):
        other.load_adapter_fusion(hub / "bert" / "fusion")
    assert other.adapter_names == []


def test_what_does_not_fit_leaves_the_encoder_as_it_was(hub, tmp_path):
    encoder = encoder_of(hub, "bert")
    with pytest.raises(ValueError, match="`model_type` must be 'bert', as the encoder is. .*rober"):
        encoder.load_adapter(hub / "roberta" / "lora")
    albert = Albert(23, 12, 3, 3, 20, 6)
    with pytest.raises(ValueError, match="must be read into an encoder of bert, .*ed: albert"):
        albert.load_adapter(hub / "bert" / "lora")
    file = extracted(tmp_path) / "bert" / "pfeiffer" / "adapter_config.json"
    about = json.loads(file.read_text())
    about["config"]["reduction_factor"] = 4
    file.write_text(json.dumps(about))
    with pytest.raises(ValueError, match="adapter_up.weight .expected .8, 2., found .8, 1.."):
        encoder.load_adapter(file.parent)
    about["config"]["scaling"] = 2.0
    file.write_text(json.dumps(about))
    with pytest.raises(ValueError, match="`scaling` must be 1.0, .* Received: scaling=2.0"):
        encoder.load_adapter(file.parent)
    assert encoder.adapter_names == []
    assert encoder.load_adapter(hub / "bert" / "lora") == "lora"
    with pytest.raises(ValueError, match="`name` must be new: there is an adapter 'lora' already"):
        encoder.load_adapter(hub / "bert" / "lora")

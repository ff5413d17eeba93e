import json

import pytest

from kbert.layers.adapters.configs import (
    KINDS,
    HoulsbyConfig,
    LoraConfig,
    PfeifferConfig,
    adapter_config,
    config_values,
)

CONFIGS = [
    HoulsbyConfig(8, "relu", 0.1),
    PfeifferConfig(adapter_dim=4),
    LoraConfig(4, 16.0, ("query", "key", "output")),
]


@pytest.mark.parametrize("config", CONFIGS)
def test_json_gives_settings_back(config):
    values = json.loads(json.dumps(config_values(config)))
    assert adapter_config(values) == config == adapter_config(config)


def test_a_name_has_the_defaults_of_its_kind():
    assert {name: adapter_config(name) for name in KINDS} == {
        "houlsby": HoulsbyConfig(64, "gelu", 1e-3),
        "pfeiffer": PfeifferConfig(None, "relu", 0.02),
        "lora": LoraConfig(8, 8.0, ("query", "value")),
    }


@pytest.mark.parametrize(
    "given, message",
    [
        ("prompt", "`config` must be one of houlsby, pfeiffer, lora. Received: 'prompt'"),
        ({"rank": 3}, "`config` must be one of houlsby, pfeiffer, lora. Received: None"),
        (
            {"kind": "lora", "r": 3},
            "`config` of lora must have no other keys than rank, alpha, targets. Received: r",
        ),
        ({"kind": ["lora"]}, "`config` must be one of houlsby, pfeiffer, lora. Received: "),
        ({"kind": "lora", "targets": "query"}, "`targets` must be a list .*Received: 'query'"),
        ({"kind": "lora", "rank": "4"}, "`rank` must be an integer of at least 1. Received: '4'"),
        ({"kind": "lora", "rank": True}, "`rank` must be an integer .*Received: True"),
        ({"kind": "lora", "alpha": float("nan")}, "`alpha` must be a finite number .*: nan"),
        ({"kind": "pfeiffer", "adapter_dim": 2.5}, "`adapter_dim` must be an integer .*: 2.5"),
        ({"kind": "pfeiffer", "initializer_range": -1}, "`initializer_range` must be a .*: -1"),
        (LoraConfig(rank=True), "`rank` must be an integer of at least 1. Received: True"),
        (LoraConfig(alpha="8"), "`alpha` must be a finite number above 0. Received: '8'"),
        (LoraConfig(targets="query"), "`targets` must be a list of dense .*: 'query'"),
        (PfeifferConfig(initializer_range=-1), "`initializer_range` must be a .*: -1"),
    ],
)
def test_errors(given, message):
    with pytest.raises(ValueError, match=message):
        adapter_config(given)

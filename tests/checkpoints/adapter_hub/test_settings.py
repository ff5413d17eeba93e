"""Settings of AdapterHub's library: what is read, and what is refused by name."""

from pathlib import Path
from typing import Any

import pytest

from kbert.checkpoints.adapter_hub.settings import adapter_settings, fusion_members, identity, wrong

FILE = Path("a/adapter_config.json")
# What adapters 1.3.0 writes for "seq_bn", "double_seq_bn" and "lora".
BOTTLENECK = {
    "adapter_residual_before_ln": False,
    "cross_adapter": False,
    "dropout": 0.0,
    "factorized_phm_W": True,
    "factorized_phm_rule": False,
    "hypercomplex_nonlinearity": "glorot-uniform",
    "init_weights": "bert",
    "init_weights_seed": None,
    "inv_adapter": None,
    "inv_adapter_reduction_factor": None,
    "is_parallel": False,
    "learn_phm": True,
    "leave_out": [],
    "ln_after": False,
    "ln_before": False,
    "original_ln_after": True,
    "output_adapter": True,
    "phm_bias": True,
    "phm_c_init": "normal",
    "phm_dim": 4,
    "phm_init_range": 0.0001,
    "phm_layer": False,
    "phm_rank": 1,
    "reduction_factor": 16,
    "residual_before_ln": True,
    "scaling": 1.0,
    "shared_W_phm": False,
    "shared_phm_rule": True,
    "stochastic_depth": 0.0,
    "use_gating": False,
}
SEQ_BN = {**BOTTLENECK, "mh_adapter": False, "original_ln_before": True, "non_linearity": "relu"}
DOUBLE = {**BOTTLENECK, "mh_adapter": True, "original_ln_before": False, "non_linearity": "swish"}
LORA = {
    "alpha": 8,
    "architecture": "lora",
    "attn_matrices": ["q", "v"],
    "composition_mode": "add",
    "dropout": 0.0,
    "dtype": None,
    "init_weights": "lora",
    "init_weights_seed": None,
    "intermediate_lora": False,
    "leave_out": [],
    "output_lora": False,
    "r": 8,
    "selfattn_lora": True,
    "use_dora": False,
    "use_gating": False,
    "vera_b": None,
    "vera_d": None,
}
FUSION = {
    "dropout_prob": None,
    "key": True,
    "query": True,
    "query_before_ln": False,
    "regularization": True,
    "residual_before": False,
    "temperature": False,
    "value": True,
    "value_before_softmax": True,
    "value_initialized": True,
}
VERSION = "adapters.1.3.0"


def settings(config: Any, hidden_dim: int = 64, **about: Any) -> dict[str, Any]:
    given = {"name": "a", "config": config, "version": VERSION, **about}
    return adapter_settings({k: v for k, v in given.items() if v is not None}, FILE, hidden_dim)


def pfeiffer(adapter_dim: int = 4, activation: str = "relu") -> dict[str, Any]:
    return {"kind": "pfeiffer", "adapter_dim": adapter_dim, "activation": activation}


def test_bottlenecks():
    assert settings(SEQ_BN) == pfeiffer()
    houlsby = {"kind": "houlsby", "adapter_dim": 4, "activation": "silu"}
    assert settings(DOUBLE) == houlsby
    for name, expected in (("seq_bn", pfeiffer()), ("pfeiffer", pfeiffer()), ("houlsby", houlsby)):
        assert settings(name) == expected
    four = ("mh_adapter", "output_adapter", "reduction_factor", "non_linearity")
    assert settings({key: DOUBLE[key] for key in four}) == houlsby
    assert settings({**SEQ_BN, "architecture": None, "leave_out": None}) == pfeiffer()


@pytest.mark.parametrize(
    ("factor", "width"),
    [(16, 4), (2.0, 32), (0.5, 128), (100, 1), (3, 21), ({"1": 16, "default": 16}, 4)],
)
def test_widths(factor, width):
    assert settings({**SEQ_BN, "reduction_factor": factor}) == pfeiffer(width)


@pytest.mark.parametrize(
    ("name", "version", "ours"),
    [
        ("gelu", VERSION, "gelu"),
        ("GELU", VERSION, "gelu"),
        ("gelu_new", VERSION, "gelu_approximate"),
        ("Tanh", VERSION, "tanh"),
        ("silu", "3.2.1", "silu"),
        ("gelu", None, "gelu_approximate"),  # as the library reads files without a version
        ("gelu_orig", None, "gelu"),
        ("relu", None, "relu"),
    ],
)
def test_activations(name, version, ours):
    found = settings({**SEQ_BN, "non_linearity": name}, version=version)
    assert found == pfeiffer(activation=ours)


def test_lora():
    plain = {"kind": "lora", "rank": 8, "alpha": 8.0, "targets": ["query", "value"]}
    assert settings(LORA) == settings("lora") == settings({"architecture": "lora"}) == plain
    everywhere = {"attn_matrices": ["v", "q", "k"], "intermediate_lora": True, "output_lora": True}
    targets = ["query", "key", "value", "intermediate", "output"]
    found = settings({**LORA, **everywhere, "r": 2, "alpha": 16})
    assert found == {"kind": "lora", "rank": 2, "alpha": 16.0, "targets": targets}
    feed_forward = {**LORA, "selfattn_lora": False, "output_lora": True}
    assert settings(feed_forward)["targets"] == ["output"]


@pytest.mark.parametrize(
    ("version", "alpha"),
    [
        *((VERSION, 16.0), ("adapters.1.1.0", 16.0), ("adapters.2.0.0", 16.0)),
        *(("3.2.1", 16.0), (None, 16.0), ("adapters.1.1.0.dev0", 2.0)),
        *(("adapters.1.0.1", 2.0), ("adapters.0.2.2", 2.0)),
    ],
)
def test_the_factor_of_lora_before_adapters_1_1(version, alpha):
    assert settings({**LORA, "r": 2, "alpha": 16}, version=version)["alpha"] == alpha


def test_dropout_is_left_out_with_a_word(caplog):
    assert settings({**LORA, "dropout": 0.1}) == settings(LORA)
    assert "adapter_config.json: dropout=0.1 is left out" in caplog.text
    assert len(caplog.records) == 1


ONLY = ", which alone kbert computes. Received: "
FORMS = "(True, True, False) (houlsby) or (False, True, True) (pfeiffer). Received: "


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({**SEQ_BN, "scaling": 4.0}, f"`scaling` must be 1.0{ONLY}scaling=4.0"),
        ({**SEQ_BN, "scaling": "learned"}, f"`scaling` must be 1.0{ONLY}scaling='learned'"),
        ({**SEQ_BN, "is_parallel": True}, f"`is_parallel` must be False{ONLY}is_parallel=True"),
        ({**SEQ_BN, "use_gating": True}, f"`use_gating` must be False{ONLY}use_gating=True"),
        ({**SEQ_BN, "ln_before": True}, f"`ln_before` must be False{ONLY}ln_before=True"),
        ({**SEQ_BN, "ln_after": True}, f"`ln_after` must be False{ONLY}ln_after=True"),
        ({**SEQ_BN, "residual_before_ln": False}, "`residual_before_ln` must be True, which"),
        ({**SEQ_BN, "residual_before_ln": "post_add"}, "residual_before_ln='post_add'"),
        ({**SEQ_BN, "adapter_residual_before_ln": True}, "adapter_residual_before_ln=True"),
        ({**SEQ_BN, "original_ln_after": False}, "`original_ln_after` must be True, which"),
        ({**SEQ_BN, "inv_adapter": "nice"}, f"`inv_adapter` must be None{ONLY}inv_adapter='nice'"),
        ({**SEQ_BN, "invertible_adapter": {"block_type": "nice"}}, "`invertible_adapter` must be"),
        ({**SEQ_BN, "phm_layer": True}, f"`phm_layer` must be False{ONLY}phm_layer=True"),
        ({**SEQ_BN, "cross_adapter": True}, "cross_adapter=True"),
        ({**SEQ_BN, "leave_out": [0]}, f"`leave_out` must be []{ONLY}leave_out=[0]"),
        ({**SEQ_BN, "stochastic_depth": 0.1}, "`stochastic_depth` must be 0.0, which"),
        (
            {**SEQ_BN, "mh_adapter": True},
            f"`mh_adapter, output_adapter, original_ln_before` must be {FORMS}mh_adapter, output_a",
        ),
        ({**DOUBLE, "output_adapter": False}, "original_ln_before=(True, False, False)"),
        ({**DOUBLE, "mh_adapter": [1]}, "=([1], True, False)"),
        ({**SEQ_BN, "non_linearity": "leakyrelu"}, "`non_linearity` must be one of gelu, "),
        ({**SEQ_BN, "non_linearity": "linear"}, "must be relu, gelu, silu, tanh or like them"),
        ({**SEQ_BN, "non_linearity": None}, "must be the name of an activation. Received: non_"),
        ({**SEQ_BN, "reduction_factor": 0}, "`reduction_factor` must be a positive number. Rec"),
        ({**SEQ_BN, "reduction_factor": "16"}, "a positive number. Received: reduction_factor='1"),
        ({**SEQ_BN, "reduction_factor": {}}, "a positive number. Received: reduction_factor={}"),
        (
            {**SEQ_BN, "reduction_factor": {"1": 8, "default": 16}},
            "`reduction_factor` must be the same in all layers. Received: reduction_factor={'1': 8",
        ),
        ({**SEQ_BN, "norm_type": "rms"}, "`config` must have keys of adapters 1.3 alone. Received"),
        ({**LORA, "use_gating": True}, f"`use_gating` must be False{ONLY}use_gating=True"),
        ({**LORA, "composition_mode": "scale"}, "`composition_mode` must be 'add', which alone"),
        ({**LORA, "use_dora": True}, f"`use_dora` must be False{ONLY}use_dora=True"),
        ({**LORA, "vera_d": 0.1}, f"`vera_d` must be None{ONLY}vera_d=0.1"),
        ({**LORA, "leave_out": [1]}, f"`leave_out` must be []{ONLY}leave_out=[1]"),
        ({**LORA, "r": 0}, "`r` must be a positive integer. Received: r=0"),
        ({**LORA, "alpha": "8"}, "`alpha` must be a number. Received: alpha='8'"),
        ({**LORA, "attn_matrices": ["q", "o"]}, "`attn_matrices` must be some of q, k, v. Receiv"),
        ({**LORA, "attn_matrices": [["q"]]}, "Received: attn_matrices=[['q']]"),
        ({**LORA, "selfattn_lora": False}, "must be true for one or more. Received: selfattn_lo"),
        ({**LORA, "n_tasks": 2}, "alone. Received: n_tasks"),
        ({"architecture": "prefix_tuning"}, "null, for bottlenecks, or 'lora'. Received: archite"),
        ({"architecture": "union", "configs": []}, "Received: architecture='union'"),
        ("compacter", "an object or one of seq_bn, pfeiffer, double_seq_bn, houlsby, lora. Recei"),
        ([], "`config` must be an object or one of seq_bn, "),
    ],
)
def test_what_kbert_does_not_compute_is_refused_by_name(config, message):
    with pytest.raises(ValueError) as error:
        settings(config)
    assert str(error.value).startswith("`a/adapter_config.json`: `")
    assert message in str(error.value)


ABOUT = {"name": "a", "config": "lora", "model_type": "bert", "hidden_size": 64}


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({}, "must have a `name` and a `config`, as AdapterHub's library writes it. Received: o"),
        ({"peft_type": "LORA", "r": 8}, "Received: one, which PEFT wrote, with peft_type, r"),
        ({**ABOUT, "name": None}, "must have a `name`"),
        ({**ABOUT, "model_type": "gpt2"}, "must be 'bert', as the encoder is. Received: model_typ"),
        ({**ABOUT, "hidden_size": None}, "`hidden_size` must be a positive integer. Received: hid"),
    ],
)
def test_files_of_others_are_refused(about, message):
    assert identity(ABOUT, FILE, "bert") == ("a", 64)
    with pytest.raises(ValueError) as error:
        identity(about, FILE, "bert")
    assert str(error.value).startswith("`a/adapter_config.json`") and message in str(error.value)


@pytest.mark.parametrize(
    ("config", "names", "message"),
    [
        ({**FUSION, "value": False}, ["a", "b"], f"`value` must be True{ONLY}value=False"),
        ({**FUSION, "temperature": True}, ["a", "b"], f"False{ONLY}temperature=True"),
        ({**FUSION, "residual_before": True}, ["a", "b"], f"False{ONLY}residual_before=True"),
        ({**FUSION, "query_before_ln": True}, ["a", "b"], f"False{ONLY}query_before_ln=True"),
        ({**FUSION, "heads": 2}, ["a", "b"], "keys of adapters 1.3 alone. Received: heads"),
        ("dynamic", ["a", "b"], "`config` must be an object. Received: config='dynamic'"),
        (FUSION, "a,b", "`adapter_names` must be a list of names. Received: adapter_names='a,b'"),
    ],
)
def test_fusions(config, names, message):
    assert fusion_members({"config": FUSION, "adapter_names": ["b", "a"]}, FILE) == ["b", "a"]
    with pytest.raises(ValueError) as error:
        fusion_members({"config": config, "adapter_names": names}, FILE)
    assert message in str(error.value)


def test_the_error_of_a_setting():
    assert str(wrong(FILE, "r", "1", 2)) == "`a/adapter_config.json`: `r` must be 1. Received: r=2"

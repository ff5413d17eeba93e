"""Settings of AdapterHub's adapters -> those of kbert; what kbert does not compute is refused.

Source: adapters 1.3.0, `configuration/adapter_config.py`, `adapter_fusion_config.py`, `loading.py`.
"""

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kbert.checkpoints.huggingface_config import activation_from_huggingface

logger = logging.getLogger(__name__)
# Bottlenecks: key -> the values that kbert computes, of which the first is the library's default.
_BOTTLENECK: dict[str, tuple[Any, ...]] = {
    "original_ln_after": (True,),
    "ln_before": (False,),
    "ln_after": (False,),
    "is_parallel": (False,),
    "scaling": (1.0,),
    "use_gating": (False,),
    "residual_before_ln": (True,),
    "adapter_residual_before_ln": (False,),
    "inv_adapter": (None,),
    "invertible_adapter": (None,),  # its name before adapters 1.0
    "cross_adapter": (False,),
    "leave_out": ([], None),
    "phm_layer": (False,),
    "stochastic_depth": (0.0, None),
}
_LORA: dict[str, tuple[Any, ...]] = {
    "composition_mode": ("add",),
    "leave_out": ([], None),
    "use_gating": (False,),
    "use_dora": (False, None),
    "vera_d": (None,),
    "vera_b": (None,),
}
_FUSION: dict[str, tuple[Any, ...]] = {
    "key": (True,),
    "query": (True,),
    "value": (True,),
    "query_before_ln": (False,),
    "residual_before": (False,),
    "temperature": (False,),
}
# Keys that concern new weights, training alone, or what the keys above exclude.
_UNREAD = {"architecture", "init_weights", "init_weights_seed", "dropout", "dtype"}
_UNREAD |= {"inv_adapter_reduction_factor", "hypercomplex_nonlinearity", "learn_phm"}
_UNREAD |= {"factorized_phm_W", "shared_W_phm", "shared_phm_rule", "factorized_phm_rule"}
_UNREAD |= {"phm_dim", "phm_c_init", "phm_init_range", "phm_rank", "phm_bias"}
_UNREAD_OF_FUSIONS = {"regularization", "value_before_softmax", "value_initialized"}
_UNREAD_OF_FUSIONS |= {"dropout_prob"}
# Settings by name.
_SEQ_BN: dict[str, Any] = {"mh_adapter": False, "output_adapter": True, "original_ln_before": True}
_SEQ_BN |= {"reduction_factor": 16, "non_linearity": "relu"}
_DOUBLE = {**_SEQ_BN, "mh_adapter": True, "original_ln_before": False, "non_linearity": "swish"}
_NAMED: dict[str, dict[str, Any]] = {
    "seq_bn": _SEQ_BN,
    "pfeiffer": _SEQ_BN,
    "double_seq_bn": _DOUBLE,
    "houlsby": _DOUBLE,
    "lora": {"architecture": "lora"},
}
_KINDS = {(True, True, False): "houlsby", (False, True, True): "pfeiffer"}
_OF_KIND = ("mh_adapter", "output_adapter", "original_ln_before")
_MATRICES = {"q": "query", "k": "key", "v": "value"}
# What activations are called in files without a version.
_RENAMED = {"gelu": "gelu_new", "gelu_orig": "gelu"}
_VERSION = re.compile(r"adapters\.(\d+)\.(\d+)\.(\d+)(.*)")


def wrong(file: Path, key: str, expected: str, value: Any) -> ValueError:
    """Returns the error for a setting in a file."""
    return ValueError(f"`{file}`: `{key}` must be {expected}. Received: {key}={value!r}")


def identity(about: Mapping[str, Any], file: Path, architecture: str) -> tuple[str, int]:
    """Returns the name of an adapter or a fusion, and the hidden width of its encoders.

    Raises a ValueError unless it is one for encoders of `architecture`.
    """
    if "config" not in about or not isinstance(about.get("name"), str):
        peft = " which PEFT wrote," if "peft_type" in about else ""
        raise ValueError(
            f"`{file}` must have a `name` and a `config`, as AdapterHub's library writes it. "
            f"Received: one,{peft} with {', '.join(sorted(about)) or 'nothing'}"
        )
    if about.get("model_type") != architecture:
        expected = f"{architecture!r}, as the encoder is"
        raise wrong(file, "model_type", expected, about.get("model_type"))
    hidden = about.get("hidden_size")
    if type(hidden) is not int or hidden < 1:
        raise wrong(file, "hidden_size", "a positive integer", hidden)
    return about["name"], hidden


def adapter_settings(about: Mapping[str, Any], file: Path, hidden_dim: int) -> dict[str, Any]:
    """Returns the settings for `kbert.layers.adapters.configs.adapter_config`.

    Raises a ValueError that names file and key where kbert does not compute the same.
    """
    given = about["config"]
    if isinstance(given, str) and given in _NAMED:
        settings = dict(_NAMED[given])
    elif isinstance(given, Mapping):
        settings = dict(given)
        if "version" not in about and isinstance(settings.get("non_linearity"), str):
            activation = settings["non_linearity"]
            settings["non_linearity"] = _RENAMED.get(activation, activation)
    else:
        raise wrong(file, "config", f"an object or one of {', '.join(_NAMED)}", given)
    if settings.get("dropout"):
        logger.warning(
            "%s: dropout=%s is left out: kbert's adapters have none in training.",
            *(file, settings["dropout"]),
        )
    architecture = settings.get("architecture")
    if architecture is None:
        return _bottleneck(settings, file, hidden_dim)
    if architecture != "lora":
        raise wrong(file, "architecture", "null, for bottlenecks, or 'lora'", architecture)
    return _lora(settings, file, about.get("version"))


def fusion_members(about: Mapping[str, Any], file: Path) -> list[str]:
    """Returns the names of the adapters of a fusion, in their order.

    Raises a ValueError that names file and key where kbert does not compute the same.
    """
    settings, names = about["config"], about.get("adapter_names")
    if not isinstance(settings, Mapping):
        raise wrong(file, "config", "an object", settings)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise wrong(file, "adapter_names", "a list of names", names)
    _check(settings, file, _FUSION, _UNREAD_OF_FUSIONS)
    return names


def _check(
    settings: Mapping[str, Any], file: Path, plain: Mapping[str, Any], others: set[str]
) -> None:
    """Checks that settings have values of `plain`, and else only `others`."""
    for key, allowed in plain.items():
        value = settings.get(key, allowed[0])
        if value not in allowed:
            expected = f"{allowed[0]!r}, which alone kbert computes"
            raise wrong(file, key, expected, value)
    unknown = sorted(set(settings) - set(plain) - others)
    if unknown:
        raise ValueError(
            f"`{file}`: `config` must have keys of adapters 1.3 alone. "
            f"Received: {', '.join(unknown)}"
        )


def _bottleneck(settings: Mapping[str, Any], file: Path, hidden_dim: int) -> dict[str, Any]:
    own = {*_OF_KIND, "reduction_factor", "non_linearity"}
    _check(settings, file, _BOTTLENECK, _UNREAD | own)
    form = tuple(settings.get(key, False) for key in _OF_KIND)
    if form not in list(_KINDS):
        forms = " or ".join(f"{values} ({kind})" for values, kind in _KINDS.items())
        raise wrong(file, ", ".join(_OF_KIND), forms, form)
    activation = settings.get("non_linearity")
    if not isinstance(activation, str):
        raise wrong(file, "non_linearity", "the name of an activation", activation)
    named = activation_from_huggingface(activation.lower(), f"`{file}`", "non_linearity")
    if named in ("sigmoid", "linear"):
        raise wrong(file, "non_linearity", "relu, gelu, silu, tanh or like them", activation)
    return {
        "kind": _KINDS[form],
        "adapter_dim": _width(settings.get("reduction_factor"), file, hidden_dim),
        "activation": named,
    }


def _width(factor: Any, file: Path, hidden_dim: int) -> int:
    """Returns the width of bottlenecks, which is the same in all layers."""
    factors = list(factor.values()) if isinstance(factor, Mapping) else [factor]
    if not factors or any(type(one) not in (int, float) or not one > 0 for one in factors):
        raise wrong(file, "reduction_factor", "a positive number", factor)
    widths = {max(1, int(hidden_dim // one)) for one in factors}
    if len(widths) > 1:
        raise wrong(file, "reduction_factor", "the same in all layers", factor)
    return widths.pop()


def _lora(settings: Mapping[str, Any], file: Path, version: Any) -> dict[str, Any]:
    places = {"selfattn_lora": True, "intermediate_lora": False, "output_lora": False}
    own = {*places, "r", "alpha", "attn_matrices"}
    _check(settings, file, _LORA, _UNREAD | own)
    rank, alpha = settings.get("r", 8), settings.get("alpha", 8)
    if type(rank) is not int or rank < 1:
        raise wrong(file, "r", "a positive integer", rank)
    if type(alpha) not in (int, float):
        raise wrong(file, "alpha", "a number", alpha)
    matrices = settings.get("attn_matrices", ["q", "v"])
    if not isinstance(matrices, list) or any(one not in list(_MATRICES) for one in matrices):
        raise wrong(file, "attn_matrices", f"some of {', '.join(_MATRICES)}", matrices)
    chosen = {key: settings.get(key, default) for key, default in places.items()}
    targets = [name for key, name in _MATRICES.items() if key in matrices]
    targets = targets if chosen["selfattn_lora"] else []
    targets += [name for name in ("intermediate", "output") if chosen[f"{name}_lora"]]
    if not targets:
        raise wrong(file, ", ".join(places), "true for one or more", tuple(chosen.values()))
    if _scaled_by_one(version):
        alpha = rank
    return {"kind": "lora", "rank": rank, "alpha": float(alpha), "targets": targets}


def _scaled_by_one(version: Any) -> bool:
    """Returns whether a version trained LoRA with the factor 1: those of adapters before 1.1."""
    found = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if found is None:
        return False
    numbers = tuple(int(found[i]) for i in (1, 2, 3))
    before = re.match(r"\.?(dev|a|b|rc)", found[4]) is not None
    return numbers < (1, 1, 0) or (numbers == (1, 1, 0) and before)

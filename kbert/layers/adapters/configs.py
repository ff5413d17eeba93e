"""Kinds of adapters and their settings, without Keras.

Each says whether several of it can be fused, and whether it can be merged into the encoder.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar


@dataclass(frozen=True)
class HoulsbyConfig:
    """A bottleneck behind both sublayers of a block, with LayerNorms of its own.

    Source: Houlsby et al. 2019. 2 (2 D m + m + 3 D) weights a block.

    Attributes:
        adapter_dim: m, the width of the bottlenecks.
        activation: of the bottlenecks.
        initializer_range: standard deviation of their new weights.
    """

    fuses: ClassVar[bool] = False
    merges: ClassVar[bool] = False

    adapter_dim: int = 64
    activation: str = "gelu"
    initializer_range: float = 1e-3


@dataclass(frozen=True)
class PfeifferConfig:
    """A bottleneck behind the feed-forward network; several can be fused.

    Source: Pfeiffer et al. 2021. 2 D m + m + D weights a block.

    Attributes:
        adapter_dim: m, the width of the bottleneck; None for D / 16.
        activation: of the bottleneck.
        initializer_range: standard deviation of its new weights.
    """

    fuses: ClassVar[bool] = True
    merges: ClassVar[bool] = False

    adapter_dim: int | None = None
    activation: str = "relu"
    initializer_range: float = 0.02


@dataclass(frozen=True)
class LoraConfig:
    """Low-rank additions to dense layers, which can be merged into their weights.

    Source: Hu et al. 2021. r (in + out) weights a target.

    Attributes:
        rank: r.
        alpha: the factor of the additions, times r.
        targets: dense layers, of "query", "key", "value", "attention_output", "intermediate" and
            "output".
    """

    fuses: ClassVar[bool] = False
    merges: ClassVar[bool] = True

    rank: int = 8
    alpha: float = 8.0
    targets: tuple[str, ...] = ("query", "value")


# Dense layers of a block that LoRA may add to.
TARGETS = ("query", "key", "value", "attention_output", "intermediate", "output")
AdapterConfig = HoulsbyConfig | PfeifferConfig | LoraConfig
KINDS: dict[str, type[AdapterConfig]] = {
    "houlsby": HoulsbyConfig,
    "pfeiffer": PfeifferConfig,
    "lora": LoraConfig,
}


def adapter_config(given: str | Mapping[str, Any] | AdapterConfig) -> AdapterConfig:
    """Returns the settings of a kind by its name, of a dict with `kind`, or of an object.

    Raises:
        ValueError: there is no such kind, it has other settings, or a setting has no such value.
    """
    if not isinstance(given, str | Mapping):
        if type(given) not in KINDS.values():
            raise ValueError(f"`config` must be one of {', '.join(KINDS)}. Received: {given!r}")
        given = config_values(given)
    values: dict[str, Any] = {"kind": given} if isinstance(given, str) else dict(given)
    kind = values.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"`config` must be one of {', '.join(KINDS)}. Received: {kind!r}")
    known = [field.name for field in fields(KINDS[kind])]
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise ValueError(
            f"`config` of {kind} must have no other keys than {', '.join(known)}. "
            f"Received: {', '.join(unknown)}"
        )
    if isinstance(targets := values.get("targets", ()), str) or not isinstance(targets, Iterable):
        raise ValueError(f"`targets` must be a list of dense layers. Received: {targets!r}")
    if "targets" in values:
        values["targets"] = tuple(targets)
    for name, value in values.items():
        _check_number(name, value)
    return KINDS[kind](**values)


def _check_number(name: str, value: Any) -> None:
    """Raises a ValueError, which names the setting, unless it is a number of its kind."""
    if name in ("rank", "adapter_dim"):
        is_default = name == "adapter_dim" and value is None
        if not is_default and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise ValueError(f"`{name}` must be an integer of at least 1. Received: {value!r}")
    elif name in ("alpha", "initializer_range"):
        if not isinstance(value, float | int) or not 0 < value < math.inf:
            raise ValueError(f"`{name}` must be a finite number above 0. Received: {value!r}")


def config_values(config: AdapterConfig) -> dict[str, Any]:
    """Returns settings as JSON types, for `adapter_config`."""
    kind = next(name for name, one in KINDS.items() if one is type(config))
    values = {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(config).items()}
    return {"kind": kind, **values}

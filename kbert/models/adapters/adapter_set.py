"""The named adapters of one encoder, and which of them it runs with and trains."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import keras

from kbert.layers.adapters.block_adapters import BlockAdapter, HoulsbyAdapter, PfeifferAdapter
from kbert.layers.adapters.configs import (
    AdapterConfig,
    HoulsbyConfig,
    LoraConfig,
    PfeifferConfig,
    adapter_config,
    config_values,
)
from kbert.layers.adapters.fusion import AdapterFusion, FusedAdapters
from kbert.layers.adapters.low_rank import LoraAdapter
from kbert.layers.adapters.routed import RoutedAdapters

ADAPTERS = "adapters"  # the name of the layer, in the paths of its weights
_JOINED = "+"


def listed(names: str | Sequence[str] | None) -> list[str]:
    """Returns the list of a name, of several, or of none; a ValueError for anything else."""
    if names is None:
        return []
    if not isinstance(names, Iterable):
        raise ValueError(f"`names` must be a name, several in a list, or None. Received: {names!r}")
    return [names] if isinstance(names, str) else list(names)


@keras.saving.register_keras_serializable("kbert")
class AdapterStack(keras.layers.Layer):
    """The parts of one adapter, or of a fusion, a part a block.

    Keras forgets a layer that is taken out of a dict, but not the layers of a list.
    """

    def __init__(self, blocks: Sequence[Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.blocks = list(blocks)
        self.built = True


@keras.saving.register_keras_serializable("kbert")
class AdapterSet(keras.layers.Layer):
    """Adapters by name, each with a part for every block, and fusions of them.

    It is no part of an encoder's call: the encoder hands each block its part.

    Attributes:
        configs: Settings of the adapters by their names.
        active: Names of those that the encoder runs with: none, one, those of a fusion or `routed`.
        routed: Whether each of the active ones is for its own rows of a batch.
        trained: Names of those that alone train with the heads, or none if the encoder trains.
        removals: How many were removed; a later one of the same name has other weights.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.parts: dict[str, AdapterStack] = {}
        self.fusions: dict[str, AdapterStack] = {}
        self.configs: dict[str, AdapterConfig] = {}
        self.active: tuple[str, ...] = ()
        self.trained: tuple[str, ...] = ()
        self.routed = False
        self.removals = 0
        self.built = True  # never by `build`, behind which Keras takes no further layers

    def add(self, name: str, config: AdapterConfig, encoder: Any) -> None:
        """Adds a new adapter for each block of an encoder.

        Raises:
            ValueError: there is one of this name, or the name is no word.
        """
        if not isinstance(name, str) or not name or set(name) & set("/+ ,"):
            raise ValueError(
                f"`name` must be a word without space, comma, slash or plus. Received: {name!r}"
            )
        if name in self.parts:
            raise ValueError(f"`name` must be new: there is an adapter {name!r} already")
        self.parts[name] = self._built(name, encoder, lambda i: _part(config, encoder, i))
        for block, part in zip(encoder.layer_blocks, self.parts[name].blocks):
            part.begin_in(block)
        self.configs[name] = config

    def fuse(self, names: Sequence[str], encoder: Any, regularization: float) -> None:
        """Adds a new fusion of adapters for each block of an encoder.

        Raises:
            ValueError: there are fewer than two, one twice, one that is not there or no Pfeiffer
                adapter, or this fusion is there.
        """
        self.check(names)
        if len(names) < 2:
            raise ValueError(f"`names` must be two adapters or more. Received: {list(names)}")
        others = [name for name in names if not self.configs[name].fuses]
        if others:
            raise ValueError(
                "`names` must be Pfeiffer adapters, whose outputs are fused. "
                f"Received: {', '.join(others)}"
            )
        key = _JOINED.join(names)
        if key in self.fusions:
            raise ValueError(f"`names` must be a new fusion: there is one of {', '.join(names)}")
        dtype = encoder.dtype_policy

        def fusion(i: int) -> AdapterFusion:
            return AdapterFusion(regularization, dtype=dtype, name=f"layer_{i}")

        self.fusions[key] = self._built(f"fusion_{key}", encoder, fusion)

    def _built(self, name: str, encoder: Any, make: Any) -> AdapterStack:
        """Makes a part for each block, whose weights are named by encoder, adapter and layer."""
        made = []
        with keras.name_scope(encoder.name), keras.name_scope(self.name), keras.name_scope(name):
            for i in range(encoder.num_layers):
                part = make(i)
                part.build((None, None, encoder.hidden_dim))
                made.append(part)
        stack = AdapterStack(made, dtype=self.dtype_policy, name=name)
        stack.trainable = self.trainable  # which Keras does not hand to layers that are added
        return stack

    def check(self, names: Sequence[str]) -> None:
        """Raises a ValueError if one of some names is not there, or there twice."""
        for name in names:
            if name not in self.parts:
                known = ", ".join(self.parts) or "none"
                raise ValueError(
                    f"`names` must be adapters that are there: {known}. Received: {name!r}"
                )
        if len(set(names)) != len(names):
            raise ValueError(f"`names` must be different adapters. Received: {', '.join(names)}")

    def members(self, names: Sequence[str]) -> list[Any]:
        """Returns what is run for some names: the parts of one adapter, or those of a fusion.

        Raises:
            ValueError: one is not there, or there is no fusion of them.
        """
        self.check(names)
        if len(names) < 2:
            return self.parts[names[0]].blocks if names else []
        key = _JOINED.join(names)
        if key not in self.fusions:
            known = ", ".join(self.fusions) or "none"
            raise ValueError(
                f"`names` must be one adapter, or those of a fusion: {known}. Received: {key}"
            )
        return self.fusions[key].blocks

    def variables_of(self, name: str) -> dict[str, Any]:
        """Returns the weights of an adapter by their paths, which begin with the layer."""
        found = self.parts[name].weights
        return {v.path.partition(f"/{self.name}/{name}/")[2]: v for v in found}

    def variables_of_fusion(self, names: Sequence[str]) -> dict[str, Any]:
        """Returns the weights of a fusion by their paths, which begin with the layer."""
        key = _JOINED.join(names)
        found = self.fusions[key].weights
        return {v.path.partition(f"/{self.name}/fusion_{key}/")[2]: v for v in found}

    def remove(self, name: str) -> None:
        """Removes an adapter, and the fusions of it.

        Raises:
            ValueError: it is not there, or active.
        """
        self.check([name])
        if name in self.active:
            raise ValueError(f"`name` must not be that of an active adapter. Received: {name!r}")
        self.removals += 1
        if name in self.trained:
            self.trained = ()
        self.parts.pop(name)
        self.configs.pop(name)
        for key in [key for key in self.fusions if name in key.split(_JOINED)]:
            self.fusions.pop(key)

    def of_blocks(self, seen: list[Any] | None = None, chosen: Any = None) -> list[Any]:
        """Returns what each block is handed, an empty list where no adapter is active.

        `seen` is a list to which the layers of an active fusion add the weights of its adapters;
        `chosen` are the numbers of the tokens' adapters, where they are `routed`.
        """
        if len(self.active) < 2 and not self.routed:
            return self.members(self.active)
        stacks = zip(*(self.parts[name].blocks for name in self.active))
        if self.routed:
            return [RoutedAdapters(parts, chosen) for parts in stacks]
        fusions = self.members(self.active)
        return [FusedAdapters(fusion, parts, seen) for fusion, parts in zip(fusions, stacks)]

    def state(self) -> dict[str, Any]:
        """Returns adapters, fusions, and what is active and trained, as JSON types; {} for none."""
        if not self.parts:
            return {}
        return {
            "configs": {name: config_values(config) for name, config in self.configs.items()},
            "fusions": [
                {"names": key.split(_JOINED), "regularization": parts.blocks[0].regularization}
                for key, parts in self.fusions.items()
            ],
            "active": list(self.active),
            "trained": list(self.trained),
            **({"routed": True} if self.routed else {}),
        }

    def restore(self, state: Mapping[str, Any], encoder: Any) -> None:
        """Adds what `state` returned to an encoder without adapters, with new weights."""
        for name, values in state["configs"].items():
            self.add(name, adapter_config(values), encoder)
        for fusion in state["fusions"]:
            self.fuse(fusion["names"], encoder, fusion["regularization"])
        self.active, self.trained = tuple(state["active"]), tuple(state["trained"])
        self.routed = state.get("routed", False)


def _houlsby(config: Any, encoder: Any, given: dict[str, Any]) -> BlockAdapter:
    shape = (config.adapter_dim, config.activation, config.initializer_range)
    return HoulsbyAdapter(*shape, encoder.layer_norm_epsilon, **given)


def _pfeiffer(config: Any, encoder: Any, given: dict[str, Any]) -> BlockAdapter:
    width = max(1, encoder.hidden_dim // 16) if config.adapter_dim is None else config.adapter_dim
    return PfeifferAdapter(width, config.activation, config.initializer_range, **given)


def _lora(config: Any, encoder: Any, given: dict[str, Any]) -> BlockAdapter:
    return LoraAdapter(
        encoder.intermediate_dim, config.rank, config.alpha, config.targets, **given
    )


_MAKERS = {HoulsbyConfig: _houlsby, PfeifferConfig: _pfeiffer, LoraConfig: _lora}


def _part(config: AdapterConfig, encoder: Any, index: int) -> BlockAdapter:
    """Returns a new adapter of one block."""
    given = {"dtype": encoder.dtype_policy, "name": f"layer_{index}"}
    return _MAKERS[type(config)](config, encoder, given)

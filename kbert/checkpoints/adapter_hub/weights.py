"""Tensors of AdapterHub's adapters -> arrays by kbert's paths, with transposed matrices.

Shapes: D hidden width, I inner width of the feed-forward network, m bottleneck, r rank.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kbert.checkpoints.arrays.checkpoint_files import SafetensorsFiles

_MAX_LISTED = 8
_QKV = ("query", "key", "value")
# What a module of the library is called in kbert.
_DENSE = {"weight": "kernel", "bias": "bias"}


@dataclass(frozen=True)
class HubNames:
    """Names of an encoder's modules in the library.

    Attributes:
        layers: what stands before the number of a layer.
        sublayers: modules with bottlenecks, by kbert's names of the sublayers.
        dense: modules that LoRA adds to, by kbert's names of the targets.
    """

    layers: str
    sublayers: Mapping[str, str]
    dense: Mapping[str, str]


_BERT = HubNames(
    "encoder.layer.",
    {"attention": "attention.output", "feed_forward": "output"},
    {
        **{name: f"attention.self.{name}" for name in _QKV},
        **{"intermediate": "intermediate.dense", "output": "output.dense"},
    },
)
_DISTILBERT = HubNames(
    "transformer.layer.",
    {"attention": "attention_adapters", "feed_forward": "output_adapters"},
    {
        **{name: f"attention.{name[0]}_lin" for name in _QKV},
        **{"intermediate": "ffn.lin1", "output": "ffn.lin2"},
    },
)
# Architecture of kbert -> names. ALBERT is left out: its layers share adapters there.
HUB_NAMES = {"bert": _BERT, "roberta": _BERT, "electra": _BERT, "distilbert": _DISTILBERT}


class HubTensors:
    """The tensors of one file by layer and name, whatever model they were written from.

    Attributes:
        names: Names of the encoder's modules.
        num_layers: Number of layers with tensors.
    """

    def __init__(self, file: Path, files: SafetensorsFiles, architecture: str) -> None:
        self.names = HUB_NAMES[architecture]
        self._file, self._files = file, files
        # A model with a head has its encoder under the name of the architecture.
        self._full = {name.removeprefix(f"{architecture}."): name for name in files.shapes}
        layer = re.compile(re.escape(self.names.layers) + r"(\d+)\.")
        self.num_layers = len({found[1] for found in map(layer.match, self._full) if found})

    def shape(self, layer: int, name: str) -> tuple[int, ...] | None:
        """Returns the shape of a layer's tensor, None where there is none."""
        return self._files.shapes.get(self._full.get(f"{self.names.layers}{layer}.{name}", ""))

    def load(self, layer: int, name: str) -> np.ndarray:
        """Returns a layer's tensor; a matrix is transposed."""
        return self._files.load(self._full[f"{self.names.layers}{layer}.{name}"]).T

    def check(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Raises a ValueError unless each layer has tensors of `shapes`, and nothing else."""
        wanted = {
            f"{self.names.layers}{layer}.{name}": shape
            for layer in range(self.num_layers)
            for name, shape in shapes.items()
        }
        found = {name: self._files.shapes[full] for name, full in self._full.items()}
        wrong = [
            f"{name} (expected {shape}, found {found.get(name, 'none')})"
            for name, shape in wanted.items()
            if found.get(name) != shape
        ]
        others = sorted(set(found) - set(wanted))
        if wrong or others or not wanted:
            raise ValueError(
                f"`{self._file}` must hold the weights of its settings in each layer. "
                f"Not there or of another shape: {_listed(wrong)}; left over: {_listed(others)}"
            )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    return ", ".join(names[:_MAX_LISTED]) + more if names else "none"


def bottleneck_arrays(
    tensors: HubTensors, name: str, config: Mapping[str, Any], hidden_dim: int
) -> dict[str, np.ndarray]:
    """Returns the weights of a Houlsby or Pfeiffer adapter by kbert's paths.

    Raises a ValueError if a tensor is missing, left over or of another shape.
    """
    width, modules = config["adapter_dim"], tensors.names.sublayers
    places = {"bottleneck": modules["feed_forward"]} if config["kind"] == "pfeiffer" else modules
    shapes: dict[str, tuple[int, ...]] = {}
    paths: dict[str, str] = {}
    for path, module in places.items():
        sizes = {"down": ("adapter_down.0", width, hidden_dim)}
        sizes |= {"up": ("adapter_up", hidden_dim, width)}
        for part, (linear, left, entered) in sizes.items():
            whole = f"{module}.adapters.{name}.{linear}"
            shapes |= {f"{whole}.weight": (left, entered), f"{whole}.bias": (left,)}
            paths |= {f"{path}/{part}/{_DENSE[kind]}": f"{whole}.{kind}" for kind in _DENSE}
    tensors.check(shapes)
    return _by_paths(tensors, paths)


def lora_arrays(
    tensors: HubTensors, name: str, config: Mapping[str, Any], hidden_dim: int
) -> tuple[dict[str, np.ndarray], int | None]:
    """Returns the weights of a LoRA adapter by kbert's paths, and I where it adds to such layers.

    Raises a ValueError if a tensor is missing, left over or of another shape.
    """
    rank, targets = config["rank"], config["targets"]
    modules = {one: f"{tensors.names.dense[one]}.loras.{name}" for one in targets}
    inner = None
    if "intermediate" in targets:
        inner = (tensors.shape(0, f"{modules['intermediate']}.lora_B") or (0,))[0]
    elif "output" in targets:
        inner = (tensors.shape(0, f"{modules['output']}.lora_A") or (0,))[-1]
    shapes: dict[str, tuple[int, ...]] = {}
    for target, module in modules.items():
        entered = inner if target == "output" else hidden_dim
        left = inner if target == "intermediate" else hidden_dim
        shapes |= {f"{module}.lora_A": (rank, entered or 0), f"{module}.lora_B": (left or 0, rank)}
    tensors.check(shapes)
    groups = {"qkv": [modules[one] for one in targets if one in _QKV]}
    groups |= {one: [modules[one]] for one in targets if one not in _QKV}
    arrays = {}
    for layer in range(tensors.num_layers):
        for group, members in groups.items():
            if members:
                downs = [tensors.load(layer, f"{module}.lora_A") for module in members]
                ups = [tensors.load(layer, f"{module}.lora_B") for module in members]
                arrays[f"layer_{layer}/{group}/down"] = np.concatenate(downs, axis=1)
                arrays[f"layer_{layer}/{group}/up"] = np.stack(ups)
    return arrays, inner


def fusion_arrays(tensors: HubTensors, name: str, hidden_dim: int) -> dict[str, np.ndarray]:
    """Returns the weights of a fusion by kbert's paths.

    Raises a ValueError if a tensor is missing, left over or of another shape.
    """
    module = f"{tensors.names.sublayers['feed_forward']}.adapter_fusion_layer.{name}"
    square = (hidden_dim, hidden_dim)
    shapes: dict[str, tuple[int, ...]] = {f"{module}.value.weight": square}
    paths = {"value": f"{module}.value.weight"}
    for part in ("query", "key"):
        shapes |= {f"{module}.{part}.weight": square, f"{module}.{part}.bias": (hidden_dim,)}
        paths |= {f"{part}/{_DENSE[kind]}": f"{module}.{part}.{kind}" for kind in _DENSE}
    tensors.check(shapes)
    return _by_paths(tensors, paths)


def _by_paths(tensors: HubTensors, paths: Mapping[str, str]) -> dict[str, np.ndarray]:
    return {
        f"layer_{layer}/{path}": tensors.load(layer, name)
        for layer in range(tensors.num_layers)
        for path, name in paths.items()
    }

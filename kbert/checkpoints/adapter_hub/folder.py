"""Folders that AdapterHub's library `adapters` wrote, of an adapter or of a fusion.

Source: adapters 1.3.0, `loading.py`.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kbert.checkpoints.adapter_folder import NamedAdapter
from kbert.checkpoints.adapter_hub.settings import adapter_settings, fusion_members, identity
from kbert.checkpoints.adapter_hub.weights import (
    HUB_NAMES,
    HubTensors,
    bottleneck_arrays,
    fusion_arrays,
    lora_arrays,
)
from kbert.checkpoints.arrays.checkpoint_files import open_safetensors
from kbert.storage.json_files import read_json_object

CONFIG, WEIGHTS, PICKLE = "adapter_config.json", "adapter.safetensors", "pytorch_adapter.bin"
FUSION_CONFIG, FUSION_WEIGHTS = "adapter_fusion_config.json", "model_adapter_fusion.safetensors"
FUSION_PICKLE = "pytorch_model_adapter_fusion.bin"


@dataclass(frozen=True)
class HubFusion:
    """A fusion without its adapters and without the encoder.

    Attributes:
        names: names of the adapters, in their order.
        encoder: sizes of the encoders that it fits, by name.
        arrays: its weights by their paths, which begin with the layer.
    """

    names: list[str]
    encoder: dict[str, Any]
    arrays: dict[str, np.ndarray]


def read_hub_adapter(directory: str | os.PathLike[str], architecture: str) -> NamedAdapter:
    """Reads an adapter for encoders of an architecture.

    The library leaves LayerNorms to the encoder, Houlsby's too: `own_norms` is False.

    Raises a ValueError if kbert does not compute what its settings say, or a file is damaged or a
    pickle, and a FileNotFoundError if one is missing.
    """
    folder = Path(directory)
    about = _read_about(folder / CONFIG, architecture)
    name, hidden = identity(about, folder / CONFIG, architecture)
    config = adapter_settings(about, folder / CONFIG, hidden)
    weights = _weights(folder, WEIGHTS, PICKLE, "save_adapter(folder, name")
    inner = None
    with open_safetensors(weights) as files:
        tensors = HubTensors(weights, files, architecture)
        if config["kind"] == "lora":
            arrays, inner = lora_arrays(tensors, name, config, hidden)
        else:
            arrays = bottleneck_arrays(tensors, name, config, hidden)
    sizes = {"hidden_dim": hidden, "num_layers": tensors.num_layers}
    sizes |= {} if inner is None else {"intermediate_dim": inner}
    return NamedAdapter(name, config, sizes, arrays, own_norms=False)


def read_hub_fusion(directory: str | os.PathLike[str], architecture: str) -> HubFusion:
    """Reads a fusion for encoders of an architecture; raises as `read_hub_adapter`."""
    folder = Path(directory)
    about = _read_about(folder / FUSION_CONFIG, architecture)
    name, hidden = identity(about, folder / FUSION_CONFIG, architecture)
    members = fusion_members(about, folder / FUSION_CONFIG)
    call = "save_adapter_fusion(folder, names"
    weights = _weights(folder, FUSION_WEIGHTS, FUSION_PICKLE, call)
    with open_safetensors(weights) as files:
        tensors = HubTensors(weights, files, architecture)
        arrays = fusion_arrays(tensors, name, hidden)
    sizes = {"hidden_dim": hidden, "num_layers": tensors.num_layers}
    return HubFusion(members, sizes, arrays)


def _read_about(file: Path, architecture: str) -> dict[str, Any]:
    if architecture not in HUB_NAMES:
        raise ValueError(
            f"`{file}` must be read into an encoder of {', '.join(HUB_NAMES)}. "
            f"Received: {architecture}"
        )
    return read_json_object(file)


def _weights(folder: Path, name: str, pickle: str, call: str) -> Path:
    """Returns the path of the weights; raises an error that says what is there instead."""
    if (folder / name).is_file():
        return folder / name
    if (folder / pickle).is_file():
        raise ValueError(
            f"`{folder}` must hold its weights as {name}. Received: {pickle}, which is a Python "
            "pickle: opening it can run any code that it contains, so kbert never does. Convert it "
            "where you trust it: load it with AdapterHub's library and call "
            f"`model.{call}, use_safetensors=True)`"
        )
    raise FileNotFoundError(f"`{folder}` must hold {name}. It has no weights")

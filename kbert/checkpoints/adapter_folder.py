"""Folders with what training added to a published encoder, and the encoder's name.

`kbert_adapters.json` describes it; `adapters.safetensors` holds adapters, heads and those of the
encoder's weights that changed. An adapter alone is in `kbert_adapter.json` and
`adapter.safetensors`.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kbert.architectures import encoder_layout
from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.checkpoints.arrays.checkpoint_files import (
    FORMAT_FILES,
    open_safetensors,
    write_safetensors,
)
from kbert.storage.files import MODEL_FILES, atomic_directory
from kbert.storage.json_files import json_text, read_json_object

CONFIG = FORMAT_FILES["kbert_adapters"]
WEIGHTS = "adapters.safetensors"
FORMAT_VERSION = 2
_GROUPS = ("adapters", "heads", "arrays", "features")
_DTYPES = ("float16", "float32")
# Settings of a training, which may differ: they do not affect the weights' shapes.
_OF_TRAINING = ("dropout", "attention_dropout")


def write_adapters(
    checkpoint: Checkpoint,
    base: Checkpoint,
    base_name: str,
    directory: str | os.PathLike[str],
    dtype: str = "float16",
) -> Path:
    """Writes what a trained checkpoint has beyond its base, which is found again by `base_name`.

    Raises a ValueError if the configurations or architectures differ, or `dtype` is neither
    "float16" nor "float32" or cannot hold the weights, and a FileExistsError if the folder exists.
    """
    if dtype not in _DTYPES:
        raise ValueError(f"`dtype` must be one of {', '.join(_DTYPES)}. Received: dtype={dtype!r}")
    mine, theirs = ({**c.config, "architecture": c.architecture} for c in (checkpoint, base))
    different = sorted(
        key
        for key in mine.keys() | theirs.keys()
        if key not in _OF_TRAINING and mine.get(key) != theirs.get(key)
    )
    if different:
        raise ValueError(
            f"`checkpoint` must have the configuration of `base`. Different: {', '.join(different)}"
        )
    changed = {
        name: array
        for name, array in checkpoint.arrays.items()
        if name not in base.arrays or not np.array_equal(array, base.arrays[name])
    }
    features = checkpoint.features
    groups = {"adapters": checkpoint.adapters, "heads": checkpoint.heads, "arrays": changed}
    groups |= {"features": features["arrays"]} if features else {}
    tensors = {
        f"{group}/{name}": _narrowed(name, array, dtype)
        for group, arrays in groups.items()
        for name, array in arrays.items()
    }
    about = {
        "format_version": FORMAT_VERSION,
        "base": base_name,
        "architecture": checkpoint.architecture,
        "lowercase": checkpoint.lowercase,
        "pipeline": checkpoint.pipeline,
        **({"adapters": checkpoint.adapter_config} if checkpoint.adapter_config else {}),
        **({"features": features["config"]} if features else {}),
    }
    with atomic_directory(directory) as folder:
        (folder / CONFIG).write_text(json_text(about), encoding="utf-8")
        write_safetensors(folder / WEIGHTS, tensors, format="kbert")
    return Path(directory)


def _narrowed(name: str, array: np.ndarray, dtype: str) -> np.ndarray:
    with np.errstate(over="ignore"):
        narrow = array.astype(dtype)
    if not np.array_equal(np.isfinite(narrow), np.isfinite(array)):
        raise ValueError(
            f"`dtype` must hold the weights. Received: {dtype} for {name}, whose largest number is "
            f"{np.abs(array).max():g}"
        )
    return narrow


def read_adapters(
    directory: str | os.PathLike[str], read_base: Callable[[str], Checkpoint]
) -> Checkpoint:
    """Reads a folder of `write_adapters`, and by `read_base` the encoder that it belongs to.

    Raises a ValueError if a file is damaged or newer than this version, or the base is of another
    architecture, a FileNotFoundError if a file is missing or the base is unknown, and an OSError if
    the base cannot be reached.
    """
    folder = Path(directory)
    about = read_json_object(folder / CONFIG)
    version = about.get("format_version")
    if version != FORMAT_VERSION or not isinstance(about.get("base"), str):
        raise ValueError(
            f"`{folder / CONFIG}` must have `format_version` {FORMAT_VERSION} and a `base`. "
            f"Received: format_version={version!r}, base={about.get('base')!r}"
        )
    groups: dict[str, dict[str, Any]] = {group: {} for group in _GROUPS}
    with open_safetensors(folder / WEIGHTS) as files:
        for name in files.shapes:
            group, _, rest = name.partition("/")
            if group not in groups:
                raise ValueError(f"`{folder / WEIGHTS}` must not hold {name!r}")
            groups[group][rest] = files.load(name).astype("float32")
    checkpoint = _read_base(folder, about["base"], read_base)
    architecture = about.get("architecture", checkpoint.architecture)
    if architecture != checkpoint.architecture:
        raise ValueError(
            f"`{folder / CONFIG}`: `architecture` must be that of {about['base']}, "
            f"{checkpoint.architecture}. Received: architecture={architecture!r}"
        )
    unknown = sorted(set(groups["arrays"]) - set(checkpoint.arrays))
    if unknown:  # a base may lack weights that its encoder has, such as a pooler's
        shapes = encoder_layout(architecture).shapes(checkpoint.config)
        unknown = [name for name in unknown if name not in shapes]
    if unknown:
        raise ValueError(
            f"`{folder / WEIGHTS}` must hold weights of {about['base']}. Received: {unknown}"
        )
    checkpoint.arrays = {**checkpoint.arrays, **groups["arrays"]}
    checkpoint.heads = groups["heads"]
    checkpoint.adapters = groups["adapters"]
    checkpoint.adapter_config = about.get("adapters", {})
    if about.get("features"):
        checkpoint.features = {"config": about["features"], "arrays": groups["features"]}
    checkpoint.pipeline = about.get("pipeline", {})
    checkpoint.lowercase = about.get("lowercase", checkpoint.lowercase)
    checkpoint.source_config = {}
    checkpoint.format = "kbert_adapters"
    return checkpoint


def _read_base(folder: Path, base: str, read_base: Callable[[str], Checkpoint]) -> Checkpoint:
    """Reads the encoder of a folder of adapters; an error says that these need it."""
    try:
        return read_base(base)
    except OSError as error:
        kind = FileNotFoundError if isinstance(error, FileNotFoundError) else OSError
        message = f"{folder.name} is adapters on {base}, which is read with them. {error}"
        raise kind(message) from error


@dataclass(frozen=True)
class NamedAdapter:
    """One adapter without its encoder.

    Attributes:
        name: its name.
        config: its settings, of `kbert.layers.adapters.configs.adapter_config`.
        encoder: sizes of the encoders that it fits: of `SIZES` those that are known, by name.
        arrays: its weights by their paths, which begin with the layer.
        own_norms: whether LayerNorms are among them; else they are copied from the encoder's.
    """

    name: str
    config: dict[str, Any]
    encoder: dict[str, Any]
    arrays: dict[str, np.ndarray]
    own_norms: bool = True


SIZES = ("hidden_dim", "num_layers", "intermediate_dim")
ADAPTER_CONFIG, ADAPTER_WEIGHTS = "kbert_adapter.json", "adapter.safetensors"


def write_adapter(
    adapter: NamedAdapter, directory: str | os.PathLike[str], overwrite: bool = False
) -> Path:
    """Writes an adapter alone, with a card; returns the folder.

    Raises a FileExistsError if the folder exists and `overwrite` is False.
    """
    about = {"format_version": FORMAT_VERSION, "name": adapter.name}
    about |= {"config": adapter.config, "encoder": adapter.encoder}
    with atomic_directory(directory, overwrite, MODEL_FILES) as folder:
        (folder / ADAPTER_CONFIG).write_text(json_text(about), encoding="utf-8")
        write_safetensors(folder / ADAPTER_WEIGHTS, adapter.arrays, format="kbert")
        (folder / "README.md").write_text(_card(adapter), encoding="utf-8")
    return Path(directory)


def read_adapter(directory: str | os.PathLike[str]) -> NamedAdapter:
    """Reads a folder of `write_adapter`.

    Raises a ValueError if a file is damaged or newer than this version, and a FileNotFoundError if
    there is none.
    """
    folder = Path(directory)
    about = read_json_object(folder / ADAPTER_CONFIG)
    keys = ("name", "config", "encoder")
    if about.get("format_version") != FORMAT_VERSION or any(key not in about for key in keys):
        raise ValueError(
            f"`{folder / ADAPTER_CONFIG}` must have `format_version` {FORMAT_VERSION}, "
            f"{', '.join(keys)}. Received: format_version={about.get('format_version')!r}, "
            f"{', '.join(sorted(about))}"
        )
    with open_safetensors(folder / ADAPTER_WEIGHTS) as files:
        arrays = {name: files.load(name) for name in files.shapes}
    return NamedAdapter(about["name"], about["config"], about["encoder"], arrays)


def adapter_of(checkpoint: Checkpoint, source: Any) -> NamedAdapter:
    """Returns the only active adapter of a checkpoint that was read from `source`.

    Raises a ValueError if none is active, or several are.
    """
    active = checkpoint.adapter_config.get("active", [])
    if len(active) != 1:
        raise ValueError(
            f"`{source}` must hold one active adapter. Received: {', '.join(active) or 'none'}"
        )
    (name,) = active
    prefix = f"{name}/"
    arrays = {
        path.removeprefix(prefix): array
        for path, array in checkpoint.adapters.items()
        if path.startswith(prefix)
    }
    sizes = {key: checkpoint.config[key] for key in SIZES}
    return NamedAdapter(name, checkpoint.adapter_config["configs"][name], sizes, arrays)


def _card(adapter: NamedAdapter) -> str:
    sizes = ", ".join(f"{name} {value}" for name, value in adapter.encoder.items())
    count = sum(array.size for array in adapter.arrays.values())
    settings = "\n".join(f"- {name}: {value}" for name, value in adapter.config.items())
    return f"""# {adapter.name}

An adapter for encoders of kbert ({sizes}): {count:,} weights.

{settings}

```python
import kbert

encoder = kbert.Bert.from_pretrained(ENCODER)
encoder.load_adapter(FOLDER)
encoder.set_active_adapters("{adapter.name}")
```
"""

"""Adapters and fusions of folders, added to an encoder."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kbert.checkpoints.adapter_folder import (
    ADAPTER_CONFIG,
    SIZES,
    NamedAdapter,
    adapter_of,
    read_adapter,
)
from kbert.checkpoints.adapter_hub.folder import CONFIG, read_hub_adapter, read_hub_fusion
from kbert.checkpoints.arrays.weight_table import POOLER
from kbert.checkpoints.read_checkpoint import read_checkpoint

_NORM = "_layer_norm/"  # in the paths of LayerNorms


def sizes_of(encoder: Any) -> dict[str, Any]:
    """Returns the sizes by which an adapter fits an encoder, by name."""
    return {size: getattr(encoder, size) for size in SIZES}


def load_adapter(encoder: Any, source: str | os.PathLike[str], name: str | None) -> str:
    """Adds the adapter of a folder or a model to an encoder; returns its name.

    Raises:
        TypeError: `source` is neither name nor path.
        ValueError: it does not fit, there is one of its name, or a file is damaged.
        FileNotFoundError: there is no such folder.
    """
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"`name_or_directory` must be a folder or a name. Received: {source!r:.80}")
    found, theirs = _found(encoder, source)
    _check_sizes(encoder, found.encoder, source)
    _check_weights(encoder, theirs, source)
    chosen = found.name if name is None else name
    encoder.add_adapter(chosen, found.config)
    variables = encoder.adapters.variables_of(chosen)
    if not found.own_norms:
        variables = {path: one for path, one in variables.items() if _NORM not in path}
    shapes = {path: tuple(variable.shape) for path, variable in variables.items()}
    others = {path: array.shape for path, array in found.arrays.items()}
    wrong = [path for path in {**shapes, **others} if shapes.get(path) != others.get(path)]
    if wrong:
        encoder.adapters.remove(chosen)
        raise ValueError(
            f"`{source}` must hold the weights of its settings. Not there, left over or of another "
            f"shape: {wrong}"
        )
    _assign(variables, found.arrays)
    return chosen


def load_fusion(
    encoder: Any, directory: str | os.PathLike[str], names: Sequence[str] | None
) -> list[str]:
    """Adds the fusion of a folder to an encoder that has its adapters; returns their names.

    Raises:
        ValueError: it does not fit, an adapter is not there, or a file is damaged.
        FileNotFoundError: there is no such folder.
    """
    found = read_hub_fusion(directory, encoder.architecture)
    _check_sizes(encoder, found.encoder, directory)
    chosen = found.names if names is None else list(names)
    if len(chosen) != len(found.names):
        raise ValueError(
            f"`names` must be those of {len(found.names)} adapters, {', '.join(found.names)} in "
            f"`{directory}`. Received: {', '.join(chosen)}"
        )
    encoder.add_adapter_fusion(chosen)
    _assign(encoder.adapters.variables_of_fusion(chosen), found.arrays)
    return chosen


def _found(
    encoder: Any, source: str | os.PathLike[str]
) -> tuple[NamedAdapter, dict[str, np.ndarray]]:
    """Returns an adapter, and the weights of its encoder where they are beside it."""
    if (Path(source) / ADAPTER_CONFIG).is_file():
        return read_adapter(source), {}
    if (Path(source) / CONFIG).is_file():
        return read_hub_adapter(source, encoder.architecture), {}
    checkpoint = read_checkpoint(source)
    return adapter_of(checkpoint, source), checkpoint.arrays


def _check_weights(
    encoder: Any, theirs: Mapping[str, np.ndarray], source: str | os.PathLike[str]
) -> None:
    """Raises a ValueError if an adapter was trained in other weights; a pooler may be another."""
    own = encoder.to_checkpoint().arrays if theirs else {}
    different = [
        path
        for path, array in theirs.items()
        if path not in POOLER
        and (path not in own or not np.array_equal(array.astype(own[path].dtype), own[path]))
    ]
    if different:
        raise ValueError(
            f"`{source}` must hold an adapter that was trained in this encoder. Received: one "
            f"whose encoder differs in {len(different)} weights, such as {different[0]}"
        )


def _check_sizes(
    encoder: Any, found: Mapping[str, Any], source: str | os.PathLike[str]
) -> None:
    sizes = sizes_of(encoder)
    if any(sizes.get(size) != value for size, value in found.items()):
        raise ValueError(
            f"`{source}` must hold an adapter for {sizes}, as the encoder is. "
            f"Received: one for {found}"
        )


def _assign(variables: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    for path, array in arrays.items():
        variables[path].assign(np.asarray(array).astype(variables[path].dtype))

"""The table that maps canonical weights to the tensors of a file, with both conversions."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbert.checkpoints.arrays.canonical_names import POOLER, canonical_shapes

_BLOCK = re.compile(r"encoder_block_(\d+)/(.+)")
# A configuration -> canonical name -> shape.
Shapes = Callable[[Mapping[str, Any]], dict[str, tuple[int, ...]]]


@dataclass(frozen=True)
class WeightEntry:
    """One canonical weight and its tensors in a file, each of `source_shape`.

    `sources` are one, or query, key and value, which are concatenated on the last axis of the
    canonical weight. `transposed` says that the file holds (out, in) instead of (in, out).
    Otherwise the two shapes differ at most by splitting an axis into heads, which is a plain
    reshape.
    """

    canonical: str
    shape: tuple[int, ...]
    sources: tuple[str, ...]
    source_shape: tuple[int, ...]
    transposed: bool = False


def weight_table(
    config: Mapping[str, Any],
    names: Mapping[str, tuple[str, ...]],
    block_names: Mapping[str, tuple[str, ...]],
    source_shape: Callable[[str, tuple[int, ...]], tuple[int, ...]] | None = None,
    transposed_kernels: bool = False,
    shapes: Shapes = canonical_shapes,
) -> list[WeightEntry]:
    """Makes the table of a format, one entry per weight in canonical order.

    Args:
        config: Hyperparameters under kbert's names.
        names: Canonical name -> names in the file.
        block_names: The same for one block, without `encoder_block_{i}/`; `{i}` in a name of the
            file stands for the block's index. `names` need not have these weights.
        source_shape: Maps the canonical name and the part's shape to the shape in the file; equal
            shapes if None.
        transposed_kernels: Whether the file's kernels are (out, in).
        shapes: The canonical shapes of the architecture.
    """
    table = []
    for canonical, shape in shapes(config).items():
        block = _BLOCK.fullmatch(canonical)
        if canonical in names or block is None:
            sources = names[canonical]
        else:
            sources = tuple(name.format(i=block[1]) for name in block_names[block[2]])
        transposed = transposed_kernels and canonical.endswith("/kernel")
        part = (*shape[:-1], shape[-1] // len(sources))
        if transposed:
            in_file = part[::-1]
        else:
            in_file = source_shape(canonical, part) if source_shape else part
        table.append(WeightEntry(canonical, shape, sources, in_file, transposed))
    return table


def without_absent_pooler(
    table: Sequence[WeightEntry], found: Iterable[str], report: list[str]
) -> list[WeightEntry]:
    """Drops the pooler from the table if the file has none, and reports that."""
    pooler = {name for entry in table if entry.canonical in POOLER for name in entry.sources}
    if pooler & set(found):
        return list(table)
    report.append("The source has no pooler: its weights stay as the model was initialized.")
    return [entry for entry in table if entry.canonical not in POOLER]


def check_tensors(
    table: Sequence[WeightEntry],
    found: Mapping[str, tuple[int, ...]],
    left_over: Iterable[str],
    source: str,
    model: str = "a BERT encoder",
) -> None:
    """Checks that a file holds exactly the tensors of the table, in their shapes.

    `found` maps the tensors of the file to shapes, `left_over` are those without use. The
    ValueError names `source`, `model` and each tensor that is missing, left over or of a wrong
    shape.
    """
    wanted = {name: entry.source_shape for entry in table for name in entry.sources}
    problems = []
    missing = [name for name in wanted if name not in found]
    if missing:
        problems.append("missing: " + ", ".join(missing))
    unknown = sorted(left_over)
    if unknown:
        problems.append("not known: " + ", ".join(unknown))
    wrong = [
        f"{name} (expected {shape}, found {tuple(found[name])})"
        for name, shape in wanted.items()
        if name in found and tuple(found[name]) != shape
    ]
    if wrong:
        problems.append("of another shape than the configuration says: " + ", ".join(wrong))
    if problems:
        raise ValueError(
            f"{source}: the weights must be those of {model} of this configuration. "
            f"Received: {'; '.join(problems)}."
        )


def assemble(
    table: Sequence[WeightEntry], load: Callable[[str], np.ndarray]
) -> dict[str, np.ndarray]:
    """Makes the canonical arrays from a file's tensors, which were checked before.

    They are C-contiguous and keep the dtype of the file. Query, key and value of several dtypes
    raise a ValueError: concatenated they share one.
    """
    arrays = {}
    for entry in table:
        parts = [load(name) for name in entry.sources]
        if len({part.dtype for part in parts}) > 1:
            raise ValueError(
                f"{', '.join(entry.sources)} must have one dtype. Received: "
                f"{', '.join(str(part.dtype) for part in parts)}"
            )
        shape = (*entry.shape[:-1], -1)
        parts = [part.T if entry.transposed else part.reshape(shape) for part in parts]
        joined = np.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]
        arrays[entry.canonical] = np.ascontiguousarray(joined)
    return arrays


def disassemble(
    table: Sequence[WeightEntry], arrays: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Makes a file's C-contiguous tensors from the canonical arrays: the inverse of `assemble`."""
    tensors = {}
    for entry in table:
        parts = np.split(np.asarray(arrays[entry.canonical]), len(entry.sources), axis=-1)
        for name, part in zip(entry.sources, parts, strict=True):
            part = part.T if entry.transposed else part.reshape(entry.source_shape)
            tensors[name] = np.ascontiguousarray(part)
    return tensors


def check_arrays(
    config: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    source: str,
    shapes: Shapes = canonical_shapes,
    model: str = "a BERT encoder",
) -> None:
    """Checks canonical arrays against the configuration; the pooler may be absent.

    The ValueError names each array that is missing, unknown or of a wrong shape.
    """
    table = [WeightEntry(name, shape, (name,), shape) for name, shape in shapes(config).items()]
    table = without_absent_pooler(table, arrays, [])
    found = {name: tuple(array.shape) for name, array in arrays.items()}
    check_tensors(table, found, set(found) - {entry.canonical for entry in table}, source, model)

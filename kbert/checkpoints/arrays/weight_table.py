"""Canonical weights, and the table that maps them to the tensors of a file, both ways.

Canonical names are the variable paths of `Bert` and `Transformer`.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

POOLER = ("pooler/kernel", "pooler/bias")
# The end of a weight's canonical name -> that of its name in a file.
TENSORFLOW_ENDS = {"kernel": "/kernel", "bias": "/bias", "gamma": "/gamma", "beta": "/beta"}
TORCH_ENDS = {"kernel": ".weight", "bias": ".bias", "gamma": ".weight", "beta": ".bias"}
_BLOCK = re.compile(r"encoder_block_(\d+)/(.+)")
# A configuration -> canonical name -> shape.
Shapes = Callable[[Mapping[str, Any]], dict[str, tuple[int, ...]]]


def canonical_shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Returns the name and the shape of each weight, in the order in which the model runs.

    Kernels are (in, out); query, key and value are concatenated in one kernel (D, 3D). The pooler
    comes last. `config` holds hyperparameters under kbert's names.
    """
    hidden, intermediate = config["hidden_dim"], config["intermediate_dim"]
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings/token_embedding/embeddings": (config["vocabulary_size"], hidden),
        "embeddings/position_embedding/embeddings": (config["max_sequence_length"], hidden),
        "embeddings/segment_embedding/embeddings": (config["num_segments"], hidden),
    }
    shapes |= _norm_shapes("embeddings/layer_norm", hidden)
    for index in range(config["num_layers"]):
        shapes |= block_shapes(index, hidden, intermediate)
    return shapes | linear_shapes("pooler", hidden, hidden)


def transformer_shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Returns the name and the shape of each weight of a `Transformer`.

    Kernels are (in, out); query, key and value are concatenated in one kernel (D, 3D), key and
    value of the cross-attention in one (D, 2D). `config` holds the arguments of the class.
    """
    hidden, intermediate = config["hidden_dim"], config["intermediate_dim"]
    vocabulary, tied = config["vocabulary_size"], config["tied"]
    source_vocabulary = config["source_vocabulary_size"] or vocabulary
    shapes: dict[str, tuple[int, ...]] = {
        "source_embedding/embeddings": (source_vocabulary, hidden)
    }
    if tied != "all":
        shapes["target_embedding/embeddings"] = (vocabulary, hidden)
    if config["positions"] == "learned":
        table = (config["max_sequence_length"], hidden)
        shapes |= {f"{side}_positions/embeddings": table for side in ("source", "target")}
    for index in range(config["num_encoder_layers"]):
        shapes |= block_shapes(index, hidden, intermediate)
    for index in range(config["num_decoder_layers"]):
        block = f"decoder_block_{index}"
        shapes |= _self_attention_shapes(f"{block}/self_attention", hidden)
        shapes |= linear_shapes(f"{block}/cross_attention/query", hidden, hidden)
        shapes |= linear_shapes(f"{block}/cross_attention/key_value", hidden, 2 * hidden)
        shapes |= linear_shapes(f"{block}/cross_attention/output", hidden, hidden)
        shapes |= _norm_shapes(f"{block}/cross_attention_residual/layer_norm", hidden)
        shapes |= _feed_forward_shapes(block, hidden, intermediate)
    if config["norm"] == "pre":
        shapes |= _norm_shapes("encoder_norm", hidden) | _norm_shapes("decoder_norm", hidden)
    if tied == "none":
        shapes["output/kernel"] = (hidden, vocabulary)
    if config["output_bias"]:
        shapes["output/bias"] = (vocabulary,)
    return shapes


def block_shapes(index: int, hidden: int, intermediate: int) -> dict[str, tuple[int, ...]]:
    """Returns canonical name -> shape of the weights of the encoder's block `index`."""
    block = f"encoder_block_{index}"
    return {
        **_self_attention_shapes(f"{block}/attention", hidden),
        **_feed_forward_shapes(block, hidden, intermediate),
    }


def _self_attention_shapes(name: str, hidden: int) -> dict[str, tuple[int, ...]]:
    return {
        **linear_shapes(f"{name}/qkv", hidden, 3 * hidden),
        **linear_shapes(f"{name}/output", hidden, hidden),
        **_norm_shapes(f"{name}_residual/layer_norm", hidden),
    }


def _feed_forward_shapes(block: str, hidden: int, intermediate: int) -> dict[str, tuple[int, ...]]:
    return {
        **linear_shapes(f"{block}/feed_forward/intermediate", hidden, intermediate),
        **linear_shapes(f"{block}/feed_forward/output", intermediate, hidden),
        **_norm_shapes(f"{block}/feed_forward_residual/layer_norm", hidden),
    }


def linear_shapes(name: str, inputs: int, outputs: int) -> dict[str, tuple[int, ...]]:
    """Returns canonical name -> shape of the weights of a dense layer."""
    return {f"{name}/kernel": (inputs, outputs), f"{name}/bias": (outputs,)}


def _norm_shapes(name: str, hidden: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}/gamma": (hidden,), f"{name}/beta": (hidden,)}


def weight_names(
    parts: Mapping[str, tuple[str, ...]], ends: Mapping[str, str] = TENSORFLOW_ENDS
) -> dict[str, tuple[str, ...]]:
    """Returns canonical name -> names in a file.

    `parts` maps a part, such as "attention/output", to its names in the file, and `ends` gamma,
    beta, kernel and bias to what the file appends to them.
    """
    names = {}
    for part, sources in parts.items():
        for end in ("gamma", "beta") if part.endswith("layer_norm") else ("kernel", "bias"):
            names[f"{part}/{end}"] = tuple(f"{source}{ends[end]}" for source in sources)
    return names


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
    """Drops a pooler that the table has and the file has not, and reports that."""
    pooler = {name for entry in table if entry.canonical in POOLER for name in entry.sources}
    if not pooler or pooler & set(found):
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

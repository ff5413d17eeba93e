"""Checkpoints of Hugging Face's transformers: `config.json` and `model.safetensors`."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kbert.architectures import encoder_layout
from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.checkpoints.arrays.checkpoint_files import (
    FORMAT_FILES,
    SafetensorsFiles,
    dtype_of,
    open_safetensors,
    shards_of,
    write_safetensors,
)
from kbert.checkpoints.arrays.encoder_layout import CAUSAL, EncoderLayout
from kbert.checkpoints.arrays.tokenizer_files import (
    padding_id,
    tokenizer_config,
    tokenizer_fields,
    write_tokenizer,
)
from kbert.checkpoints.arrays.weight_table import (
    assemble,
    check_tensors,
    disassemble,
    without_absent_pooler,
)
from kbert.checkpoints.encoders.bert import LAYOUT as BERT
from kbert.checkpoints.huggingface_config import (
    check_architecture,
    choose_architecture,
    config_from_huggingface,
    config_to_huggingface,
    layout_of_huggingface,
    set_labels,
)
from kbert.storage.files import MODEL_FILES, atomic_directory
from kbert.storage.json_files import json_text, read_json_object

CONFIG = FORMAT_FILES["huggingface"]
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
# What sentence-transformers puts behind the encoder; `kbert.tasks.embedding` reads it.
MODULES = "modules.json"


def read_huggingface(directory: str | os.PathLike[str]) -> Checkpoint:
    """Reads a folder in Hugging Face's format.

    Weights are read with or without the prefix of the encoder (`bert.`), in one file or in shards,
    and keep their dtype. Heads (`classifier`, `qa_outputs`, `cls`) are kept; position ids and
    copies of tied weights, which older versions saved, are left out and reported. Any other missing
    or unexpected tensor is an error.

    Raises a ValueError if a file is damaged, the model is not a plain encoder that kbert has, or
    tensors are missing, unknown or of a wrong shape, and a FileNotFoundError if a file is missing.
    """
    directory = Path(directory)
    raw = read_json_object(directory / CONFIG)
    source = f"`{directory / CONFIG}`"
    layout, config = layout_of_huggingface(raw, source), config_from_huggingface(raw, source)
    report: list[str] = []
    with open_safetensors(*weight_files(directory)) as files:
        arrays, heads = _read_tensors(files, layout, raw, config, f"`{directory}`", report)
    if config.get(CAUSAL) and "pooler/kernel" in arrays:
        report.append("The pooler reads the last token, as the encoder is causal.")
    return Checkpoint(
        config=config,
        architecture=layout.architecture,
        arrays=arrays,
        heads=heads,
        source_config=raw,
        format="huggingface",
        report=report,
        **tokenizer_fields(directory, raw, config["vocabulary_size"], report),
        modules_path=directory / MODULES if (directory / MODULES).is_file() else None,
    )


def _check_padding(checkpoint: Checkpoint, layout: EncoderLayout) -> None:
    """Checks the id of the padding, by which transformers counts positions where it shifts them."""
    first = 0 if layout.transformers is None else layout.transformers.first_position
    found = padding_id(checkpoint)
    if first and found not in (None, first - 1):
        raise ValueError(
            f"`vocabulary` must have the padding token at {first - 1} in Hugging Face's format of "
            f"{layout.title}. Received: <pad> at {found}"
        )


def weight_files(directory: Path) -> list[Path]:
    """Returns the one file with the weights of a folder, or its shards."""
    single = directory / WEIGHTS
    return [single] if single.is_file() else shards_of(directory / INDEX)


def write_huggingface(
    checkpoint: Checkpoint,
    directory: str | os.PathLike[str],
    overwrite: bool = False,
    architecture: str | None = None,
) -> Path:
    """Writes a folder that transformers loads with no weight missing or left over.

    The folder gets `config.json`, `model.safetensors`, `tokenizer_config.json` and, if there is a
    vocabulary, `vocab.txt` or the files of a byte-level BPE; of a tokenizer that kbert cannot read
    it gets none, as they would split texts in another way. As in transformers, the encoder has a
    prefix (`bert.`) only if there are heads, and classes without a pooler (token classification,
    question answering, masked LM) do not get one. Arrays keep their dtype, so weights read from
    Hugging Face's format are written back byte for byte; unknown fields of `source_config` stay.

    `architecture` is the class of transformers to name, BERT's for any encoder, needed where a
    `classifier` could be of several; by default the source's, or the one that fits the heads and
    the pooler. Raises a ValueError if arrays do not fit the configuration, or no class has such
    heads, and a FileExistsError if the folder exists and `overwrite` is False.
    """
    config, layout = checkpoint.config, encoder_layout(checkpoint.architecture)
    layout.check_arrays(config, checkpoint.arrays, "`checkpoint`")
    name = _architecture(checkpoint, layout, architecture)
    tensors = _write_names(checkpoint, layout, name)
    raw = config_to_huggingface(config, checkpoint.source_config, name, dtype_of(tensors), layout)
    if WEIGHT in checkpoint.heads:
        raw[_TIED] = False
    if "classifier.weight" in checkpoint.heads and not name.endswith("ForMultipleChoice"):
        set_labels(raw, checkpoint.heads["classifier.weight"].shape[0])
    _check_padding(checkpoint, layout)
    with atomic_directory(directory, overwrite, MODEL_FILES) as folder:
        (folder / CONFIG).write_text(json_text(raw), encoding="utf-8")
        # transformers refuses files whose header does not name the framework.
        write_safetensors(folder / WEIGHTS, tensors, format="pt")
        if checkpoint.unread_tokenizer is None:
            (folder / "tokenizer_config.json").write_text(
                json_text(tokenizer_config(checkpoint)), encoding="utf-8"
            )
            write_tokenizer(checkpoint, folder, "vocab.txt")
    return Path(directory)


def _read_tensors(
    files: SafetensorsFiles,
    layout: EncoderLayout,
    raw: Mapping[str, Any],
    config: Mapping[str, Any],
    source: str,
    report: list[str],
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Returns the encoder's arrays under canonical names, and those of the heads."""
    in_file = modern_names(files.shapes, report, layout)
    table = without_absent_pooler(layout.huggingface_table(config), in_file, report)
    known = {name for entry in table for name in entry.sources}
    heads = [name for name in in_file if is_head(name)]
    buffers = [name for name in in_file if name in BUFFERS]
    if buffers:
        report.append(f"Left out, as they are no weights: {', '.join(buffers)}.")
    if heads:
        report.append(f"Kept the tensors of heads: {', '.join(heads)}.")
    check_tensors(
        table,
        {name: files.shapes[in_file[name]] for name in in_file},
        {in_file[name] for name in set(in_file) - known - set(heads) - set(buffers)},
        source,
        layout.title,
    )
    arrays = assemble(table, lambda name: files.load(in_file[name]))
    loaded = {name: files.load(in_file[name]) for name in heads}
    tokens = arrays["embeddings/token_embedding/embeddings"]
    return arrays, without_copies(loaded, tokens, report, raw.get(_TIED, True) is not False)


def _architecture(checkpoint: Checkpoint, layout: EncoderLayout, wanted: str | None) -> str:
    causal = checkpoint.config.get(CAUSAL, False)
    heads, has_pooler = checkpoint.heads, checkpoint.has_pooler
    if wanted is None:
        named = checkpoint.source_config.get("architectures") or [None]
        chosen = choose_architecture(heads, has_pooler, named[0], causal, layout)
    else:
        chosen = layout.huggingface.class_of(wanted)
    check_architecture(chosen, heads, has_pooler, causal, layout)
    return chosen


def _write_names(
    checkpoint: Checkpoint, layout: EncoderLayout, architecture: str
) -> dict[str, np.ndarray]:
    names = layout.huggingface
    table = layout.huggingface_table(checkpoint.config)
    if not (checkpoint.has_pooler and names.classes[architecture].pooler):
        table = [entry for entry in table if not entry.canonical.startswith("pooler/")]
    prefix = names.prefix if checkpoint.heads else ""
    encoder = disassemble(table, checkpoint.arrays)
    kept = dict(checkpoint.heads)
    if WEIGHT in kept:  # transformers' classes have both biases, and add that of the layer
        bias = kept[BIAS] if BIAS in kept else kept[_OWN_BIAS]
        kept = {BIAS: bias, _OWN_BIAS: bias, **kept}
    heads = {names.head_in_file(name, architecture): array for name, array in kept.items()}
    return {f"{prefix}{name}": array for name, array in encoder.items()} | heads


WEIGHT, BIAS = "cls.predictions.decoder.weight", "cls.predictions.decoder.bias"
_OWN_BIAS = "cls.predictions.bias"
# The field that says whether the output layer's matrix is that of the token embeddings.
_TIED = "tie_word_embeddings"


def without_copies(
    heads: Mapping[str, np.ndarray], table: np.ndarray, report: list[str], tied: bool = True
) -> dict[str, np.ndarray]:
    """Drops copies of tied weights from the tensors of heads, given the token embeddings (V, D).

    An output layer whose matrix differs from the embeddings, or is not `tied` to them, stays with
    all that it has, and gets its bias where the file has it under the usual name alone; the report
    says either. The bias of a tied layer that has only the name of the layer gets its usual name.
    """
    if WEIGHT in heads and not (tied and np.array_equal(heads[WEIGHT], table)):
        own = ", ".join(name for name in (WEIGHT, BIAS) if name in heads)
        report.append(f"The output layer is one of its own, not tied: {own}.")
        return {BIAS: heads[_OWN_BIAS], **heads} if _OWN_BIAS in heads else dict(heads)
    kept = dict(heads)
    if _OWN_BIAS not in kept and BIAS in kept:
        kept[_OWN_BIAS] = kept.pop(BIAS)
    originals = {WEIGHT: table, BIAS: kept.get(_OWN_BIAS, np.zeros(0))}
    twice = [name for name in originals if name in kept]
    copies = [name for name in twice if np.array_equal(kept[name], originals[name])]
    others = [name for name in twice if name not in copies]
    if copies:
        report.append(f"Left out, as they are copies of other weights: {', '.join(copies)}.")
    if others:
        report.append(f"The output layer is one of its own, not tied: {', '.join(others)}.")
    return {name: array for name, array in kept.items() if name not in copies}


# Beginnings of the names of heads' tensors in a `Checkpoint`; the last is ELECTRA's own.
HEAD_PREFIXES = ("classifier.", "hidden.", "qa_outputs.", "cls.", "discriminator_predictions.")
# Buffers that older versions saved with the weights: position ids and zeros.
BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")
_OLD_ENDS = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


def modern_names(
    names: Iterable[str], report: list[str], layout: EncoderLayout = BERT
) -> dict[str, str]:
    """Maps current names, without the prefix of the encoder, to the names in a file.

    The gamma and beta of old files come from their conversion from TensorFlow; the report says how
    many there were. Raises a ValueError if two tensors of the file are the same weight.
    """
    modern: dict[str, str] = {}
    twice = []
    renamed = 0
    theirs = layout.huggingface
    for name in sorted(names):
        new = theirs.head_of_file(name.removeprefix(theirs.prefix))
        for old_end, new_end in _OLD_ENDS.items():
            if new.endswith(old_end):
                new = new.removesuffix(old_end) + new_end
                renamed += 1
        if new in modern:
            twice.append(f"{modern[new]} and {name}")
        modern[new] = name
    if twice:
        raise ValueError(f"Each weight must be there once. Received: {'; '.join(twice)}")
    if renamed:
        report.append(f"Read gamma and beta as weight and bias in {renamed} LayerNorm tensors.")
    return modern


def is_head(name: str) -> bool:
    """Returns whether a tensor belongs to a known task head."""
    return name.startswith(HEAD_PREFIXES)

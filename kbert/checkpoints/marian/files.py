"""Marian translation models in Hugging Face's layout.

A folder with `config.json`, `model.safetensors`, `source.spm`, `target.spm` and `vocab.json`.

Source: transformers, `models/marian` (configuration, modeling and tokenization).
"""

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kbert.checkpoints.arrays.json_object import read_json_object
from kbert.checkpoints.arrays.safetensors_files import open_safetensors, shards_of
from kbert.checkpoints.arrays.transformer_names import transformer_shapes
from kbert.checkpoints.arrays.weight_table import WeightEntry, assemble, check_tensors
from kbert.checkpoints.huggingface.files import CONFIG, INDEX, WEIGHTS
from kbert.checkpoints.marian.config import config_from_marian, settings_from_marian
from kbert.checkpoints.marian.vocabulary import MarianVocabulary, read_vocabularies
from kbert.checkpoints.native.translation_folder import TranslationCheckpoint

GENERATION = "generation_config.json"
# Added to the logit of a piece that must never be predicted. It leaves no chance beside real
# logits, and is yet small enough for a loss with smoothed labels, which uses all pieces.
NEVER = -100.0
_SHARED, _OUTPUT = "model.shared.weight", "lm_head.weight"
_SOURCE, _TARGET = (f"model.{side}.embed_tokens.weight" for side in ("encoder", "decoder"))
_BIAS = "final_logits_bias"
# Sinusoids, which kbert computes.
_POSITIONS = tuple(f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder"))
_SELF_ATTENTION = tuple(f"self_attn.{part}_proj" for part in "qkv")
_PARTS = {
    "attention/qkv": _SELF_ATTENTION,
    "attention/output": ("self_attn.out_proj",),
    "attention_residual/layer_norm": ("self_attn_layer_norm",),
    "self_attention/qkv": _SELF_ATTENTION,
    "self_attention/output": ("self_attn.out_proj",),
    "self_attention_residual/layer_norm": ("self_attn_layer_norm",),
    "cross_attention/query": ("encoder_attn.q_proj",),
    "cross_attention/key_value": ("encoder_attn.k_proj", "encoder_attn.v_proj"),
    "cross_attention/output": ("encoder_attn.out_proj",),
    "cross_attention_residual/layer_norm": ("encoder_attn_layer_norm",),
    "feed_forward/intermediate": ("fc1",),
    "feed_forward/output": ("fc2",),
    "feed_forward_residual/layer_norm": ("final_layer_norm",),
}
_ENDS = {"kernel": "weight", "gamma": "weight", "bias": "bias", "beta": "bias"}


def is_marian(directory: str | os.PathLike[str]) -> bool:
    """Returns whether a path is a folder whose `config.json` is of a Marian model."""
    config = Path(directory) / CONFIG
    return config.is_file() and read_json_object(config).get("model_type") == "marian"


def read_marian(directory: str | os.PathLike[str]) -> TranslationCheckpoint:
    """Reads a Marian model.

    Ids are those of `vocab.json`: the SentencePiece models of the result have them, see
    `kbert.checkpoints.marian.subwords`. After them come the pieces that `vocab.json` does not
    have: Marian reads them as unknown, so that their embeddings are the unknown piece's. They, and
    what the configuration forbids by `bad_words_ids` (usually the padding), have a bias that keeps
    them from being predicted.

    Args:
        directory: the folder.

    Returns:
        The model, in float32. The start piece of translations is that of `decoder_start_token_id`,
        usually the padding. If embeddings are not scaled, no tables are shared, because kbert
        scales them on look-up.

    Raises:
        ValueError: a file is damaged, the model is not supported by kbert, or tensors are missing,
            unknown or of a wrong shape; each is named.
        FileNotFoundError: a file is missing.
    """
    folder = Path(directory)
    raw = read_json_object(folder / CONFIG)
    config = config_from_marian(raw, f"`{folder / CONFIG}`")
    generation = folder / GENERATION
    settings = {**raw, **(read_json_object(generation) if generation.is_file() else {})}
    source, target = read_vocabularies(folder, raw, config)
    arrays = _read_arrays(folder, raw, config)
    never = [ids[0] for ids in settings.get("bad_words_ids") or [] if len(ids) == 1]
    if not raw.get("scale_embedding", False):
        for side in ("source", "target"):
            arrays[side] = arrays[side] / np.float32(math.sqrt(config["hidden_dim"]))
    arrays = _blocks(arrays) | _with_added_pieces(arrays, config, source, target, never)
    config["vocabulary_size"] = len(target.pieces)
    if config["source_vocabulary_size"] is not None:
        config["source_vocabulary_size"] = len(source.pieces)
    return TranslationCheckpoint(
        config, arrays, source.subwords, target.subwords, settings_from_marian(settings)
    )


def _read_arrays(
    folder: Path, raw: Mapping[str, Any], config: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """Reads the canonical arrays of the blocks, and the tables: source, target, output and bias."""
    single = folder / WEIGHTS
    paths = [single] if single.is_file() else shards_of(folder / INDEX)
    with open_safetensors(*paths) as files:
        table = _weight_table(raw, config, files.shapes)
        known = {name for entry in table for name in entry.sources}
        # Shared weights may be stored repeatedly, under their own names.
        again = {_SHARED, _SOURCE, _TARGET, _OUTPUT, *_POSITIONS}
        left_over = set(files.shapes) - known - again
        check_tensors(table, files.shapes, left_over, f"`{folder}`", "a Marian model")
        arrays = assemble(table, files.load)
    arrays = {name: array.astype("float32") for name, array in arrays.items()}
    arrays.setdefault("bias", np.zeros((1, config["vocabulary_size"]), "float32"))
    return arrays


def _weight_table(
    raw: Mapping[str, Any], config: Mapping[str, Any], found: Mapping[str, Any]
) -> list[WeightEntry]:
    table = []
    for name, shape in transformer_shapes(config).items():
        if "_block_" not in name:
            continue
        sources = _sources(name)
        part = (*shape[:-1], shape[-1] // len(sources))
        transposed = name.endswith("/kernel")
        in_file = part[::-1] if transposed else part
        table.append(WeightEntry(name, shape, sources, in_file, transposed))
    size, hidden = config["vocabulary_size"], config["hidden_dim"]
    rows = {"source": config["source_vocabulary_size"] or size, "target": size, "output": size}
    for key, names in _table_names(raw).items():
        source = next((name for name in names if name in found), names[0])
        table.append(WeightEntry(key, (rows[key], hidden), (source,), (rows[key], hidden)))
    if _BIAS in found:
        table.append(WeightEntry("bias", (1, size), (_BIAS,), (1, size)))
    return table


def _table_names(raw: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Returns the names that each table may have in the file, the usual one first."""
    tied = (_OUTPUT,) * bool(raw.get("tie_word_embeddings", True))
    if raw.get("share_encoder_decoder_embeddings", True):
        source = target = (_SHARED, _SOURCE, _TARGET, *tied)
    else:
        source, target = (_SOURCE,), (_TARGET, *tied)
    return {"source": source, "target": target, "output": target if tied else (_OUTPUT,)}


def _sources(canonical: str) -> tuple[str, ...]:
    """Returns the file's tensors of a weight of a block."""
    block, _, rest = canonical.partition("/")
    side, _, index = block.partition("_block_")
    part, _, end = rest.rpartition("/")
    return tuple(f"model.{side}.layers.{index}.{name}.{_ENDS[end]}" for name in _PARTS[part])


def _blocks(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: array for name, array in arrays.items() if "_block_" in name}


def _with_added_pieces(
    tables: Mapping[str, np.ndarray],
    config: Mapping[str, Any],
    source: MarianVocabulary,
    target: MarianVocabulary,
    never: Sequence[int],
) -> dict[str, np.ndarray]:
    """Returns canonical arrays of embeddings and output, with a row for each added piece."""
    bias = _extended(tables["bias"][0], target)
    bias[len(target.pieces) - target.added :] += NEVER
    bias[list(never)] += NEVER
    arrays = {
        "source_embedding/embeddings": _extended(tables["source"], source),
        "output/bias": bias,
    }
    if config["tied"] != "all":
        arrays["target_embedding/embeddings"] = _extended(tables["target"], target)
    if config["tied"] == "none":
        output = _extended(tables["output"], target)
        arrays["output/kernel"] = np.ascontiguousarray(output.T)
    return arrays


def _extended(rows: np.ndarray, vocabulary: MarianVocabulary) -> np.ndarray:
    """Appends the unknown piece's row for each added piece."""
    unknown = rows[vocabulary.unknown_id : vocabulary.unknown_id + 1]
    return np.concatenate([rows, np.repeat(unknown, vocabulary.added, axis=0)])

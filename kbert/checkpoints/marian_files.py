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

from kbert.checkpoints.arrays.checkpoint_files import open_safetensors
from kbert.checkpoints.arrays.weight_table import (
    TORCH_ENDS,
    WeightEntry,
    assemble,
    check_tensors,
    transformer_shapes,
    weight_table,
)
from kbert.checkpoints.huggingface_config import activation_from_huggingface
from kbert.checkpoints.huggingface_files import CONFIG, weight_files
from kbert.checkpoints.marian_subwords import MarianVocabulary, read_vocabularies
from kbert.checkpoints.translation_folder import TranslationCheckpoint
from kbert.storage.json_files import read_json_object

# kbert's key -> (Hugging Face's key, its default).
SIZES = {
    "vocabulary_size": ("vocab_size", 58101),
    "hidden_dim": ("d_model", 1024),
    "num_encoder_layers": ("encoder_layers", 12),
    "num_decoder_layers": ("decoder_layers", 12),
    "num_heads": ("encoder_attention_heads", 16),
    "intermediate_dim": ("encoder_ffn_dim", 4096),
    "max_sequence_length": ("max_position_embeddings", 1024),
}
_RATES = {"dropout": ("dropout", 0.1), "attention_dropout": ("attention_dropout", 0.0)}
# Fields of the decoder that must equal those of the encoder.
_SAME = {
    "decoder_attention_heads": ("encoder_attention_heads", 16),
    "decoder_ffn_dim": ("encoder_ffn_dim", 4096),
}
# Fields of older files that change what the model computes, with the values that change nothing.
_PLAIN = {
    "normalize_before": (None, False),
    "normalize_embedding": (None, False),
    "add_final_layer_norm": (None, False),
    "static_position_embeddings": (None, True),
    "quantization_config": (None,),
}


def config_from_marian(raw: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Returns the arguments of `Transformer` for a `config.json`.

    Missing fields have transformers' defaults. If embeddings are not scaled, `tied` is "none":
    kbert scales them on look-up, so that their table cannot be that of the output. Raises a
    ValueError that names `source` if it is of no Marian model, or of a variant that kbert does not
    support.
    """
    if raw.get("model_type") != "marian":
        raise ValueError(
            f"{source}: `model_type` must be 'marian'. Received: {raw.get('model_type')!r}"
        )
    for key, allowed in _PLAIN.items():
        if raw.get(key) not in allowed:
            raise ValueError(
                f"{source}: `{key}` must be {allowed[-1]!r} or absent. Received: {raw[key]!r}"
            )
    for key, (other, default) in _SAME.items():
        own, others = raw.get(key, default), raw.get(other, default)
        if own != others:
            raise ValueError(
                f"{source}: `{key}` must be equal to `{other}`. Received: {key}={own}, "
                f"{other}={others}"
            )
    config = {key: raw.get(name, default) for key, (name, default) in SIZES.items()}
    source_vocabulary_size = None
    if not _is_shared(raw):
        source_vocabulary_size = config["vocabulary_size"]
        config["vocabulary_size"] = raw.get("decoder_vocab_size") or source_vocabulary_size
    for key, value in config.items():
        if type(value) is not int or value < 1:
            raise ValueError(
                f"{source}: `{SIZES[key][0]}` must be a positive whole number. Received: {value!r}"
            )
    activation = raw.get("activation_function", "gelu")
    return {
        **config,
        **{key: raw.get(name, default) for key, (name, default) in _RATES.items()},
        "activation": activation_from_huggingface(activation, source, "activation_function"),
        "norm": "post",
        "positions": "sinusoidal_halves",
        "tied": _tied(raw),
        "source_vocabulary_size": source_vocabulary_size,
        "output_bias": True,
        "layer_norm_epsilon": 1e-5,
    }


def _is_shared(raw: Mapping[str, Any]) -> bool:
    return bool(raw.get("share_encoder_decoder_embeddings", True))


def _tied(raw: Mapping[str, Any]) -> str:
    if not (raw.get("tie_word_embeddings", True) and raw.get("scale_embedding", False)):
        return "none"
    return "all" if _is_shared(raw) else "target"


def settings_from_marian(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Reads search settings, under the names of `kbert.tasks.translation.model.Translator`.

    They are in `config.json` and `generation_config.json` together. The maximum length is left out,
    which kbert has relative to the source.
    """
    settings: dict[str, Any] = {}
    if raw.get("num_beams"):
        settings["beam_size"] = raw["num_beams"]
    if raw.get("length_penalty") is not None:
        settings |= {"length_penalty": "power", "alpha": float(raw["length_penalty"])}
    return settings


GENERATION = "generation_config.json"
# Added to the logit of a piece that must never be predicted. It leaves no chance beside real
# logits, and is yet small enough for a loss with smoothed labels, which uses all pieces.
NEVER = -100.0
_SHARED, _OUTPUT = "model.shared.weight", "lm_head.weight"
_SOURCE, _TARGET = (f"model.{side}.embed_tokens.weight" for side in ("encoder", "decoder"))
_BIAS = "final_logits_bias"
# Sinusoids, which kbert computes.
_POSITIONS = tuple(f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder"))
_PARTS = {
    "attention/qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "attention/output": ("self_attn.out_proj",),
    "attention_residual/layer_norm": ("self_attn_layer_norm",),
    "cross_attention/query": ("encoder_attn.q_proj",),
    "cross_attention/key_value": ("encoder_attn.k_proj", "encoder_attn.v_proj"),
    "cross_attention/output": ("encoder_attn.out_proj",),
    "cross_attention_residual/layer_norm": ("encoder_attn_layer_norm",),
    "feed_forward/intermediate": ("fc1",),
    "feed_forward/output": ("fc2",),
    "feed_forward_residual/layer_norm": ("final_layer_norm",),
}


def read_marian(directory: str | os.PathLike[str]) -> TranslationCheckpoint:
    """Reads a Marian model, in float32.

    Ids are those of `vocab.json`: the SentencePiece models of the result have them, see
    `kbert.checkpoints.marian_subwords`. After them come the pieces that `vocab.json` does not have:
    Marian reads them as unknown, so that their embeddings are the unknown piece's. They, and what
    the configuration forbids by `bad_words_ids` (usually the padding), have a bias that keeps them
    from being predicted. The start piece of translations is that of `decoder_start_token_id`,
    usually the padding. If embeddings are not scaled, no tables are shared, because kbert scales
    them on look-up.

    Raises a ValueError if a file is damaged, the model is not supported by kbert, or tensors are
    missing, unknown or of a wrong shape, and a FileNotFoundError if a file is missing.
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
            arrays[side] /= np.float32(math.sqrt(config["hidden_dim"]))
    blocks = {name: array for name, array in arrays.items() if "_block_" in name}
    arrays = blocks | _with_added_pieces(arrays, config, source, target, never)
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
    with open_safetensors(*weight_files(folder)) as files:
        table = _table(raw, config, files.shapes)
        known = {name for entry in table for name in entry.sources}
        # Shared weights may be stored repeatedly, under their own names.
        again = {_SHARED, _SOURCE, _TARGET, _OUTPUT, *_POSITIONS}
        left_over = set(files.shapes) - known - again
        check_tensors(table, files.shapes, left_over, f"`{folder}`", "a Marian model")
        arrays = assemble(table, files.load)
    arrays = {name: array.astype("float32") for name, array in arrays.items()}
    arrays.setdefault("bias", np.zeros((1, config["vocabulary_size"]), "float32"))
    return arrays


def _table(
    raw: Mapping[str, Any], config: Mapping[str, Any], found: Mapping[str, Any]
) -> list[WeightEntry]:
    shapes = {name: s for name, s in transformer_shapes(config).items() if "_block_" in name}
    sources = {name: _sources(name) for name in shapes}
    table = weight_table(config, sources, {}, transposed_kernels=True, shapes=lambda _: shapes)
    size, hidden = config["vocabulary_size"], config["hidden_dim"]
    rows = {"source": config["source_vocabulary_size"] or size, "target": size, "output": size}
    for key, names in _table_names(raw).items():
        source = next((name for name in names if name in found), names[0])
        shape = (rows[key], hidden)
        table.append(WeightEntry(key, shape, (source,), shape))
    if _BIAS in found:
        table.append(WeightEntry("bias", (1, size), (_BIAS,), (1, size)))
    return table


def _table_names(raw: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Returns the names that each table may have in the file, the usual one first."""
    tied = (_OUTPUT,) * bool(raw.get("tie_word_embeddings", True))
    if _is_shared(raw):
        source = target = (_SHARED, _SOURCE, _TARGET, *tied)
    else:
        source, target = (_SOURCE,), (_TARGET, *tied)
    return {"source": source, "target": target, "output": target if tied else (_OUTPUT,)}


def _sources(canonical: str) -> tuple[str, ...]:
    """Returns the file's tensors of a weight of a block."""
    block, _, rest = canonical.partition("/")
    side, _, index = block.partition("_block_")
    part, _, end = rest.removeprefix("self_").rpartition("/")  # named alike in both blocks
    return tuple(f"model.{side}.layers.{index}.{name}{TORCH_ENDS[end]}" for name in _PARTS[part])


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

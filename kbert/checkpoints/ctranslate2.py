"""Model folders of CTranslate2.

Source: https://opennmt.net/CTranslate2, version 4.8; its own specifications write the files.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kbert.checkpoints.arrays.weight_table import check_arrays, transformer_shapes
from kbert.extras import install_extra
from kbert.storage.files import MODEL_FILES, atomic_directory
from kbert.storage.json_files import json_text

# kbert's activation -> the name in ctranslate2.specs.common_spec.Activation.
_ACTIVATIONS = {
    "relu": "RELU",
    "gelu": "GELU",
    "gelu_approximate": "GELUTanh",
    "quick_gelu": "GELUSigmoid",
    "silu": "SWISH",
    "tanh": "Tanh",
}
SEARCH = "search.json"


@dataclass(frozen=True)
class TokenNames:
    """The pieces of a translation model's source and target, in the order of their ids.

    `unknown` and `end`, for unknown characters and the end of a text, are in both; `start` precedes
    a translation.
    """

    source: Sequence[str]
    target: Sequence[str]
    unknown: str
    start: str
    end: str


def write_ctranslate2(
    config: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    tokens: TokenNames,
    directory: str | os.PathLike[str],
    *,
    alignment_layer: int = -1,
    search: Mapping[str, Any] | None = None,
    files: Mapping[str, bytes] | None = None,
    overwrite: bool = False,
) -> Path:
    """Writes a folder for `ctranslate2.Translator`, in float32.

    CTranslate2 itself adds the end piece to a source. It can quantize the weights when it loads
    them (`compute_type="int8"`).

    Args:
        config: the arguments of `Transformer`. Its positions must be
            "learned": sinusoids are a table too.
        arrays: canonical name -> array, those of `weight_table.transformer_shapes`.
        alignment_layer: the decoder layer whose cross-attention, averaged over heads, CTranslate2
            returns as the attention: from 0, or from -1 back from the last one.
        search: the content of `search.json` beside the model, for example the arguments of
            `ctranslate2.Translator.translate_batch`; or None.
        files: name -> content of further files, for example the subword models.

    Raises a ValueError if arrays do not fit the configuration, pieces are not as many as
    embeddings, a special piece is missing from a vocabulary, or CTranslate2 has no such model, a
    ModuleNotFoundError without its package, and a FileExistsError if the folder exists and
    `overwrite` is False.
    """
    _check(config, arrays, tokens)
    spec = _spec(config, alignment_layer)
    _fill(spec, config, {n: np.ascontiguousarray(a, dtype="float32") for n, a in arrays.items()})
    spec.register_source_vocabulary(list(tokens.source))
    spec.register_target_vocabulary(list(tokens.target))
    spec.config.unk_token, spec.config.eos_token = tokens.unknown, tokens.end
    spec.config.bos_token = spec.config.decoder_start_token = tokens.start
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = config["layer_norm_epsilon"]
    spec.validate()
    spec.optimize()  # tables that are shared are written once
    with atomic_directory(directory, overwrite, MODEL_FILES) as folder:
        spec.save(str(folder))
        if search is not None:
            (folder / SEARCH).write_text(json_text(dict(search)), encoding="utf-8")
        for name, content in (files or {}).items():
            (folder / name).write_bytes(content)
    return Path(directory)


def import_ctranslate2() -> Any:
    """Imports the package; the ModuleNotFoundError if it is not installed names the extra."""
    try:
        import ctranslate2
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"Conversion to CTranslate2 needs its package: {install_extra('ctranslate2')}"
        ) from error
    return ctranslate2


def _check(config: Mapping[str, Any], arrays: Mapping[str, np.ndarray], tokens: TokenNames) -> None:
    if config["positions"] != "learned":
        raise ValueError(
            '`positions` must be "learned", with a table for source and target. '
            f"Received: positions={config['positions']!r}"
        )
    if config["activation"] not in _ACTIVATIONS:
        raise ValueError(
            f"`activation` must be one that CTranslate2 has: {', '.join(_ACTIVATIONS)}. "
            f"Received: activation={config['activation']!r}"
        )
    check_arrays(config, arrays, "`arrays`", transformer_shapes, "a Transformer")
    sizes = {
        "source": config["source_vocabulary_size"] or config["vocabulary_size"],
        "target": config["vocabulary_size"],
    }
    for side, size in sizes.items():
        pieces = getattr(tokens, side)
        if len(pieces) != size or len(set(pieces)) != size:
            raise ValueError(
                f"`tokens.{side}` must be as many different pieces as there are embeddings, "
                f"{size}. Received: {len(pieces)}, {len(set(pieces))} of them different"
            )
        needed = (tokens.unknown, tokens.end) + (tokens.start,) * (side == "target")
        missing = [piece for piece in needed if piece not in pieces]
        if missing:
            raise ValueError(f"`tokens.{side}` must have the pieces {needed}. Missing: {missing}")


def _spec(config: Mapping[str, Any], alignment_layer: int) -> Any:
    specs = import_ctranslate2().specs
    settings = {
        "num_heads": config["num_heads"],
        "pre_norm": config["norm"] == "pre",
        "activation": getattr(specs.Activation, _ACTIVATIONS[config["activation"]]),
    }
    # Both scale their embeddings by sqrt(D) by default.
    return specs.TransformerSpec(
        specs.TransformerEncoderSpec(config["num_encoder_layers"], **settings),
        specs.TransformerDecoderSpec(
            config["num_decoder_layers"],
            **settings,
            alignment_layer=alignment_layer,
            alignment_heads=0,  # the mean of all, as its own converter writes for fairseq
        ),
    )


def _fill(spec: Any, config: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    encoder, decoder = spec.encoder, spec.decoder
    source_table = arrays["source_embedding/embeddings"]
    target_table = arrays.get("target_embedding/embeddings", source_table)
    encoder.embeddings[0].weight, decoder.embeddings.weight = source_table, target_table
    encoder.position_encodings.encodings = arrays["source_positions/embeddings"]
    decoder.position_encodings.encodings = arrays["target_positions/embeddings"]
    for index, layer in enumerate(encoder.layer):
        block = f"encoder_block_{index}"
        _fill_attention(layer.self_attention, arrays, f"{block}/attention", "qkv", "output")
        _fill_feed_forward(layer.ffn, arrays, block)
    for index, layer in enumerate(decoder.layer):
        block = f"decoder_block_{index}"
        _fill_attention(layer.self_attention, arrays, f"{block}/self_attention", "qkv", "output")
        cross = f"{block}/cross_attention"
        _fill_attention(layer.attention, arrays, cross, "query", "key_value", "output")
        _fill_feed_forward(layer.ffn, arrays, block)
    if config["norm"] == "pre":
        _fill_norm(encoder.layer_norm, arrays, "encoder_norm")
        _fill_norm(decoder.layer_norm, arrays, "decoder_norm")
    if config["tied"] == "none":
        _fill_linear(decoder.projection, arrays, "output")
    else:
        decoder.projection.weight = target_table
        if config["output_bias"]:
            decoder.projection.bias = arrays["output/bias"]


def _fill_attention(spec: Any, arrays: Mapping[str, np.ndarray], name: str, *parts: str) -> None:
    for linear, part in zip(spec.linear, parts, strict=True):
        _fill_linear(linear, arrays, f"{name}/{part}")
    _fill_norm(spec.layer_norm, arrays, f"{name}_residual/layer_norm")


def _fill_feed_forward(spec: Any, arrays: Mapping[str, np.ndarray], block: str) -> None:
    _fill_linear(spec.linear_0, arrays, f"{block}/feed_forward/intermediate")
    _fill_linear(spec.linear_1, arrays, f"{block}/feed_forward/output")
    _fill_norm(spec.layer_norm, arrays, f"{block}/feed_forward_residual/layer_norm")


def _fill_linear(spec: Any, arrays: Mapping[str, np.ndarray], name: str) -> None:
    # CTranslate2's kernels are (out, in).
    spec.weight = np.ascontiguousarray(arrays[f"{name}/kernel"].T)
    if f"{name}/bias" in arrays:
        spec.bias = arrays[f"{name}/bias"]


def _fill_norm(spec: Any, arrays: Mapping[str, np.ndarray], name: str) -> None:
    spec.gamma, spec.beta = arrays[f"{name}/gamma"], arrays[f"{name}/beta"]

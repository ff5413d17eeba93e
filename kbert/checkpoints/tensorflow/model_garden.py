"""Checkpoints of TensorFlow Model Garden (tf-models-official): the object graph of a BertEncoder.

Source: tf-models-official, `nlp/modeling/networks/bert_encoder.py`, `nlp/configs/encoders.py`,
`nlp/modeling/layers/transformer_encoder_block.py`.
"""

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.checkpoints.arrays.tokenizer_files import tokenizer_fields
from kbert.checkpoints.arrays.weight_table import (
    assemble,
    check_tensors,
    weight_names,
    weight_table,
    without_absent_pooler,
)
from kbert.checkpoints.tensorflow.object_graph import EncoderKeys, ObjectGraph, find_encoder
from kbert.checkpoints.tensorflow.tf1_bert import CONFIG, KEYS, config_from_google, oriented
from kbert.storage.json_files import read_json_object

PARAMS = "params.yaml"
# Canonical name -> path of attributes from the encoder object.
_NAMES = {
    "embeddings/token_embedding/embeddings": ("_embedding_layer/embeddings",),
    "embeddings/position_embedding/embeddings": ("_position_embedding_layer/embeddings",),
    "embeddings/segment_embedding/embeddings": ("_type_embedding_layer/embeddings",),
    **weight_names(
        {"embeddings/layer_norm": ("_embedding_norm_layer",), "pooler": ("_pooler_layer",)}
    ),
}
_LAYER = "_transformer_layers/{i}"
_SELF = f"{_LAYER}/_attention_layer"
_BLOCK_NAMES = weight_names(
    {
        "attention/qkv": (f"{_SELF}/_query_dense", f"{_SELF}/_key_dense", f"{_SELF}/_value_dense"),
        "attention/output": (f"{_SELF}/_output_dense",),
        "attention_residual/layer_norm": (f"{_LAYER}/_attention_layer_norm",),
        "feed_forward/intermediate": (f"{_LAYER}/_intermediate_dense",),
        "feed_forward/output": (f"{_LAYER}/_output_dense",),
        "feed_forward_residual/layer_norm": (f"{_LAYER}/_output_layer_norm",),
    }
)
# BertEncoderConfig's fields and defaults.
_PARAMS = {
    **KEYS,
    "vocabulary_size": ("vocab_size", 30522),
    "num_layers": ("num_layers", 12),
    "num_segments": ("type_vocab_size", 2),
    "dropout": ("dropout_rate", 0.1),
    "attention_dropout": ("attention_dropout_rate", 0.1),
}
# Model Garden's own "gelu" has always been the tanh form.
_GELU = "gelu_approximate"
_MASKED_LM = {
    "cls.predictions.bias": "bias",
    "cls.predictions.transform.dense.weight": "dense/kernel",
    "cls.predictions.transform.dense.bias": "dense/bias",
    "cls.predictions.transform.LayerNorm.weight": "layer_norm/gamma",
    "cls.predictions.transform.LayerNorm.bias": "layer_norm/beta",
}
_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"


def read_model_garden(prefix: str | os.PathLike[str], values: bool = True) -> Checkpoint:
    """Reads a checkpoint of Model Garden by its prefix, for example `.../bert_model.ckpt-1`.

    The encoder is found anywhere in the object graph: `Checkpoint(encoder=...)`,
    `Checkpoint(model=...)`, or inside a classifier, span labeler or pretrainer. The configuration
    comes from `bert_config.json` or `params.yaml` beside the files; otherwise from the shapes, with
    the default dropout rates. A classification head and a masked-LM head get Hugging Face's names;
    other variables outside the encoder are left out and reported. Without `values` the arrays are
    zeros, and TensorFlow is not imported.

    Raises a ValueError if there is no BERT encoder in it, or variables of the encoder are missing,
    unknown or of another shape than the configuration's, and an ImportError if TensorFlow is needed
    but not installed.
    """
    prefix = Path(prefix)
    graph = ObjectGraph(str(prefix), values)
    encoder, numbered = find_encoder(graph, f"`{prefix}`")
    keys = EncoderKeys(graph, encoder, numbered)
    report: list[str] = []
    config, raw = _configuration(prefix.parent, keys, report)
    table = weight_table(config, _NAMES, _BLOCK_NAMES, partial(_in_file, config["num_heads"]))
    sources = [name for entry in table for name in entry.sources]
    key_of = {name: key for name in sources if (key := keys.find(name))}
    table = without_absent_pooler(table, key_of, report)
    used = set(key_of.values())
    found = {name: graph.shapes[key] for name, key in key_of.items()}
    check_tensors(table, found, keys.inside() - used, f"`{prefix}`")
    heads = _heads(graph, used)
    outside = sorted(key.removesuffix(_SUFFIX) for key in set(graph.shapes) - used)
    if outside:
        report.append(f"Left out what is not of the encoder: {', '.join(outside)}.")
    if heads:
        report.append(f"Kept the tensors of heads: {', '.join(heads)}.")
    return Checkpoint(
        config=config,
        arrays=assemble(table, lambda name: graph.load(key_of[name])),
        heads=heads,
        format="model_garden",
        report=report,
        **tokenizer_fields(prefix.parent, raw, config["vocabulary_size"], report),
    )


def _configuration(
    directory: Path, keys: EncoderKeys, report: list[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the configuration, and the raw one that it comes from, or {}."""
    path = directory / CONFIG
    if path.is_file():
        raw = read_json_object(path)
        return config_from_google(raw, f"`{path}`", gelu=_GELU), raw
    path = directory / PARAMS
    if path.is_file():
        raw = _encoder_params(path)
        return config_from_google(raw, f"`{path}`", _GELU, _PARAMS, "hidden_activation"), raw
    query = keys.shape("_transformer_layers/0/_attention_layer/_query_dense/kernel")
    if len(query) != 3:
        raise ValueError(
            f"`{directory}` must hold {CONFIG} or {PARAMS}: the attention's kernels do not say the "
            f"number of heads. Received: shape={query}"
        )
    sizes = {
        "vocab_size": keys.shape("_embedding_layer/embeddings")[0],
        "hidden_size": query[0],
        "num_layers": keys.num_layers,
        "num_attention_heads": query[1],
        "intermediate_size": keys.shape("_transformer_layers/0/_intermediate_dense/kernel")[1],
        "max_position_embeddings": keys.shape("_position_embedding_layer/embeddings")[0],
        "type_vocab_size": keys.shape("_type_embedding_layer/embeddings")[0],
    }
    config = config_from_google(sizes, f"`{directory}`", _GELU, _PARAMS)
    report.append(
        f"No {CONFIG} and no {PARAMS}: sizes are those of the variables; dropout rates, activation "
        "and initializer are Model Garden's defaults."
    )
    return config, {}


def _encoder_params(path: Path) -> dict[str, Any]:
    """Finds the fields of the encoder at any depth of `params.yaml`."""
    try:
        queue: list[Any] = [yaml.safe_load(path.read_text(encoding="utf-8"))]
    except yaml.YAMLError as error:
        raise ValueError(f"`{path}` must be a YAML file. Received: {error}") from error
    for value in queue:
        if isinstance(value, dict):
            if "hidden_size" in value and "num_attention_heads" in value:
                if value.get("norm_first"):
                    raise ValueError(f"`{path}`: `norm_first` must be false. Received: true")
                return value
            queue.extend(value.values())
    raise ValueError(f"`{path}` must hold the fields of an encoder, hidden_size and the others.")


def _in_file(num_heads: int, canonical: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the shape in the file, where attention splits an axis into heads."""
    if canonical.endswith(("attention/qkv/kernel", "attention/qkv/bias")):
        return (*shape[:-1], num_heads, shape[-1] // num_heads)
    if canonical.endswith("attention/output/kernel"):
        return (num_heads, shape[0] // num_heads, shape[1])
    return shape


def _heads(graph: ObjectGraph, used: set[str]) -> dict[str, np.ndarray]:
    """Loads heads with a counterpart in Hugging Face's format; their keys are added to `used`."""
    heads: dict[str, np.ndarray] = {}
    for node in graph.nodes():
        children = graph.children(node)
        if "out_proj" in children and "dense" not in children:
            names = {"classifier.weight": "out_proj/kernel", "classifier.bias": "out_proj/bias"}
        elif {"embedding_table", "dense", "layer_norm"} <= set(children):
            names = _MASKED_LM
        else:
            continue
        keys = {name: graph.key(node, path) for name, path in names.items()}
        if None in keys.values() or set(keys) & set(heads):
            continue
        for name, key in keys.items():
            heads[name] = oriented(names[name], graph.load(str(key)))
            used.add(str(key))
    return heads

"""Checkpoints of google-research/bert: `bert_model.ckpt.*`, `bert_config.json`, `vocab.txt`.

Source: google-research/bert, `modeling.py`, `run_pretraining.py`, `run_classifier.py` and
`run_squad.py`, where the variables get their names.
"""

import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kbert.architectures import BERT
from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.checkpoints.arrays.encoder_layout import CAUSAL, check_config
from kbert.checkpoints.arrays.tokenizer_files import tokenizer_config, tokenizer_fields
from kbert.checkpoints.arrays.weight_table import (
    assemble,
    check_arrays,
    check_tensors,
    disassemble,
    weight_names,
    weight_table,
    without_absent_pooler,
)
from kbert.checkpoints.encoders import bert
from kbert.checkpoints.tensorflow.variables import TensorflowVariables, import_tensorflow
from kbert.storage.files import MODEL_FILES, atomic_directory
from kbert.storage.json_files import json_text, read_json_object

logger = logging.getLogger(__name__)
CONFIG = "bert_config.json"
# kbert's key -> (Google's key, BertConfig's default; the published files have all of them).
KEYS: dict[str, tuple[str, Any]] = {
    **{k: v for k, v in bert.KEYS.items() if k not in ("activation", "layer_norm_epsilon")},
    "vocabulary_size": ("vocab_size", None),
    "num_segments": ("type_vocab_size", 16),
}
_ACTIVATIONS = ("relu", "tanh", "linear")
# Not an option in either code base.
_LAYER_NORM_EPSILON = 1e-12


def config_from_google(
    raw: Mapping[str, Any],
    source: str,
    gelu: str,
    keys: Mapping[str, tuple[str, Any]] = KEYS,
    activation_key: str = "hidden_act",
) -> dict[str, Any]:
    """Reads a configuration of Google's as hyperparameters under kbert's names.

    `gelu` is kbert's name of the activation that "gelu" means in this format. `keys` and
    `activation_key` are the file's, as in `KEYS`, if they are not those of BertConfig. Raises a
    ValueError that names `source` if a value is missing or invalid.
    """
    config = {key: raw.get(name, default) for key, (name, default) in keys.items()}
    missing = [name for key, (name, _) in keys.items() if config[key] is None]
    if missing:
        raise ValueError(f"{source} must have {', '.join(missing)}. Received: {', '.join(raw)}")
    activation = raw.get(activation_key, "gelu")
    if activation != "gelu" and activation not in _ACTIVATIONS:
        raise ValueError(
            f"{source}: `{activation_key}` must be one of gelu, {', '.join(_ACTIVATIONS)}. "
            f"Received: {activation_key}={activation!r}"
        )
    config["activation"] = gelu if activation == "gelu" else activation
    config["layer_norm_epsilon"] = _LAYER_NORM_EPSILON
    check_config(config, source)
    return config


def config_to_google(config: Mapping[str, Any]) -> dict[str, Any]:
    """Makes the content of `bert_config.json`; raises a ValueError for what it cannot express."""
    activation = config["activation"]
    if activation not in ("gelu", "gelu_approximate", *_ACTIVATIONS):
        raise ValueError(
            f"`activation` must be one of gelu, gelu_approximate, {', '.join(_ACTIVATIONS)} in "
            f"Google's format. Received: activation={activation!r}"
        )
    if config.get(CAUSAL):
        raise ValueError(f"`causal` must be False in Google's format. Received: causal={True}")
    if config["layer_norm_epsilon"] != _LAYER_NORM_EPSILON:
        raise ValueError(
            f"`layer_norm_epsilon` must be {_LAYER_NORM_EPSILON} in Google's format. "
            f"Received: layer_norm_epsilon={config['layer_norm_epsilon']}"
        )
    raw = {name: config[key] for key, (name, _) in KEYS.items()}
    raw["hidden_act"] = "gelu" if activation.startswith("gelu") else activation
    return raw


PREFIX = "bert_model.ckpt"
_NAMES = {
    "embeddings/token_embedding/embeddings": ("bert/embeddings/word_embeddings",),
    "embeddings/position_embedding/embeddings": ("bert/embeddings/position_embeddings",),
    "embeddings/segment_embedding/embeddings": ("bert/embeddings/token_type_embeddings",),
    **weight_names(
        {"embeddings/layer_norm": ("bert/embeddings/LayerNorm",), "pooler": ("bert/pooler/dense",)}
    ),
}
_LAYER = "bert/encoder/layer_{i}"
_SELF = f"{_LAYER}/attention/self"
_BLOCK_NAMES = weight_names(
    {
        "attention/qkv": (f"{_SELF}/query", f"{_SELF}/key", f"{_SELF}/value"),
        "attention/output": (f"{_LAYER}/attention/output/dense",),
        "attention_residual/layer_norm": (f"{_LAYER}/attention/output/LayerNorm",),
        "feed_forward/intermediate": (f"{_LAYER}/intermediate/dense",),
        "feed_forward/output": (f"{_LAYER}/output/dense",),
        "feed_forward_residual/layer_norm": (f"{_LAYER}/output/LayerNorm",),
    }
)
_TRANSFORM = "cls/predictions/transform"
# Hugging Face's name of a head's tensor -> its name in this format.
_HEADS = {
    "classifier.weight": "output_weights",
    "classifier.bias": "output_bias",
    "qa_outputs.weight": "cls/squad/output_weights",
    "qa_outputs.bias": "cls/squad/output_bias",
    "cls.predictions.bias": "cls/predictions/output_bias",
    "cls.predictions.transform.dense.weight": f"{_TRANSFORM}/dense/kernel",
    "cls.predictions.transform.dense.bias": f"{_TRANSFORM}/dense/bias",
    "cls.predictions.transform.LayerNorm.weight": f"{_TRANSFORM}/LayerNorm/gamma",
    "cls.predictions.transform.LayerNorm.bias": f"{_TRANSFORM}/LayerNorm/beta",
    "cls.seq_relationship.weight": "cls/seq_relationship/output_weights",
    "cls.seq_relationship.bias": "cls/seq_relationship/output_bias",
}
# The state of training: Adam's moments of each weight, its powers, counters, loss scaling.
_TRAINING = re.compile(
    r".*/(adam|lamb)_[mv](_\d+)?|.*/Adam(_\d+)?"
    r"|global_step|beta[12]_power|.*loss_scale|good_steps|bad_steps"
)
_GELU_NOTE = (
    "Read gelu as the exact form, as Google's code computed it when BERT was published and as "
    "transformers does; that code computes the tanh form since then (gelu_approximate)."
)


def read_tf1_bert(prefix: str | os.PathLike[str], values: bool = True) -> Checkpoint:
    """Reads a checkpoint of google-research/bert by its prefix, for example `.../bert_model.ckpt`.

    Beside its files are `bert_config.json` and, optionally, `vocab.txt`. Heads get Hugging Face's
    names; the state of the optimizer is left out and reported. Without `values` the arrays are
    zeros, and TensorFlow is not imported.

    Raises a ValueError if the configuration is missing or variables are missing, unknown or of a
    wrong shape, and an ImportError if TensorFlow is needed but not installed.
    """
    prefix = Path(prefix)
    directory = prefix.parent
    if not (directory / CONFIG).is_file():
        raise ValueError(
            f"`{directory}` must hold {CONFIG}: the variables do not say the number of heads."
        )
    raw = read_json_object(directory / CONFIG)
    config = config_from_google(raw, f"`{directory / CONFIG}`", gelu="gelu")
    report: list[str] = [_GELU_NOTE] if config["activation"] == "gelu" else []
    variables = TensorflowVariables(str(prefix), "Reading a TensorFlow 1 checkpoint", values)
    found = variables.shapes
    table = weight_table(config, _NAMES, _BLOCK_NAMES)
    table = without_absent_pooler(table, found, report)
    known = {name for entry in table for name in entry.sources}
    heads = {hf: name for hf, name in _HEADS.items() if name in found}
    known |= set(heads.values())
    training = sorted(name for name in set(found) - known if _TRAINING.fullmatch(name))
    if training:
        report.append(f"Left out {len(training)} variables of training: {', '.join(training)}.")
    if heads:
        report.append(f"Kept the tensors of heads: {', '.join(heads)}.")
    check_tensors(table, found, set(found) - known - set(training), f"`{prefix}`")
    return Checkpoint(
        config=config,
        arrays=assemble(table, variables.load),
        heads={hf: oriented(name, variables.load(name)) for hf, name in heads.items()},
        format="tf1_bert",
        report=report,
        **tokenizer_fields(directory, raw, config["vocabulary_size"], report),
    )


def write_tf1_bert(
    checkpoint: Checkpoint, directory: str | os.PathLike[str], overwrite: bool = False
) -> Path:
    """Writes `bert_model.ckpt.*`, `bert_config.json` and `vocab.txt` for google-research/bert.

    The variables are float32, which that code requires. No `.meta` file (the graph) is written: the
    code does not read it. Nor does it read `tokenizer_config.json`, the rules of the tokenizer,
    which kbert does. Returns the prefix of the files, the value of `--init_checkpoint`.

    Raises a ValueError if arrays do not fit the configuration, or the format has no such encoder or
    head, a FileExistsError if the folder exists and `overwrite` is False, and an ImportError
    without TensorFlow.
    """
    if checkpoint.architecture != BERT:
        raise ValueError(
            "`checkpoint` must be of a BERT encoder, the only one in this format. "
            f"Received: architecture={checkpoint.architecture!r}"
        )
    check_arrays(checkpoint.config, checkpoint.arrays, "`checkpoint`")
    unknown = [name for name in checkpoint.heads if name not in _HEADS]
    if unknown:
        raise ValueError(
            f"`heads` must be among {', '.join(_HEADS)}. Received: {', '.join(unknown)}"
        )
    raw = config_to_google(checkpoint.config)
    if checkpoint.config["activation"] == "gelu_approximate":
        logger.warning(
            "The format has one name for both forms of GELU: kbert and transformers will read the "
            "exact one, where this encoder computes the tanh form."
        )
    table = weight_table(checkpoint.config, _NAMES, _BLOCK_NAMES)
    present = [_NAMES[name][0] for name in checkpoint.arrays if name in _NAMES]
    table = without_absent_pooler(table, present, [])
    variables = disassemble(table, checkpoint.arrays)
    variables |= {_HEADS[hf]: oriented(_HEADS[hf], a) for hf, a in checkpoint.heads.items()}
    tensorflow = import_tensorflow("Writing a TensorFlow 1 checkpoint")
    names = sorted(variables)
    if checkpoint.tokenizer_files:
        raise ValueError(
            '`format` must be "kbert" or "huggingface" for a byte-level BPE. '
            f"Received: {' and '.join(checkpoint.tokenizer_files)}"
        )
    is_read = checkpoint.unread_tokenizer is None  # else the vocabulary alone would mislead
    vocabulary = checkpoint.vocabulary_bytes() if is_read else None
    with atomic_directory(directory, overwrite, MODEL_FILES) as folder:
        (folder / CONFIG).write_text(json_text(raw), encoding="utf-8")
        tensorflow.raw_ops.SaveV2(
            prefix=str(folder / PREFIX),
            tensor_names=names,
            shape_and_slices=[""] * len(names),
            tensors=[tensorflow.constant(variables[name].astype(np.float32)) for name in names],
        )
        if vocabulary is not None:
            (folder / "vocab.txt").write_bytes(vocabulary)
            rules = json_text(tokenizer_config(checkpoint))
            (folder / "tokenizer_config.json").write_text(rules, encoding="utf-8")
    return Path(directory) / PREFIX


def oriented(name: str, array: np.ndarray) -> np.ndarray:
    """Turns a head's array to or from Hugging Face's orientation; kernels alone differ in it."""
    return np.ascontiguousarray(array.T) if name.endswith("/kernel") else array

"""Checkpoints of google-research/bert: `bert_model.ckpt.*`, `bert_config.json`, `vocab.txt`.

Source: google-research/bert, `modeling.py`, `run_pretraining.py`, `run_classifier.py` and
`run_squad.py`, where the variables get their names.
"""

import os
import re
from pathlib import Path

import numpy as np

from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.checkpoints.arrays.json_object import json_text, read_json_object
from kbert.checkpoints.arrays.lowercase import resolve_lowercase
from kbert.checkpoints.arrays.vocabulary_file import find_vocabulary
from kbert.checkpoints.arrays.weight_table import (
    assemble,
    check_arrays,
    check_tensors,
    disassemble,
    weight_table,
    without_absent_pooler,
)
from kbert.checkpoints.tensorflow.bert_config import CONFIG, config_from_google, config_to_google
from kbert.checkpoints.tensorflow.variables import TensorflowVariables, import_tensorflow
from kbert.storage.atomic_directory import atomic_directory

PREFIX = "bert_model.ckpt"
_NAMES = {
    "embeddings/token_embedding/embeddings": ("bert/embeddings/word_embeddings",),
    "embeddings/position_embedding/embeddings": ("bert/embeddings/position_embeddings",),
    "embeddings/segment_embedding/embeddings": ("bert/embeddings/token_type_embeddings",),
    "embeddings/layer_norm/gamma": ("bert/embeddings/LayerNorm/gamma",),
    "embeddings/layer_norm/beta": ("bert/embeddings/LayerNorm/beta",),
    "pooler/kernel": ("bert/pooler/dense/kernel",),
    "pooler/bias": ("bert/pooler/dense/bias",),
}
_LAYER = "bert/encoder/layer_{i}/"
_QKV = tuple(f"{_LAYER}attention/self/{part}/" for part in ("query", "key", "value"))
_BLOCK_NAMES = {
    "attention/qkv/kernel": tuple(f"{part}kernel" for part in _QKV),
    "attention/qkv/bias": tuple(f"{part}bias" for part in _QKV),
    "attention/output/kernel": (f"{_LAYER}attention/output/dense/kernel",),
    "attention/output/bias": (f"{_LAYER}attention/output/dense/bias",),
    "attention_residual/layer_norm/gamma": (f"{_LAYER}attention/output/LayerNorm/gamma",),
    "attention_residual/layer_norm/beta": (f"{_LAYER}attention/output/LayerNorm/beta",),
    "feed_forward/intermediate/kernel": (f"{_LAYER}intermediate/dense/kernel",),
    "feed_forward/intermediate/bias": (f"{_LAYER}intermediate/dense/bias",),
    "feed_forward/output/kernel": (f"{_LAYER}output/dense/kernel",),
    "feed_forward/output/bias": (f"{_LAYER}output/dense/bias",),
    "feed_forward_residual/layer_norm/gamma": (f"{_LAYER}output/LayerNorm/gamma",),
    "feed_forward_residual/layer_norm/beta": (f"{_LAYER}output/LayerNorm/beta",),
}
# Hugging Face's name of a head's tensor -> (its name in this format, whether it is transposed).
_HEADS = {
    "classifier.weight": ("output_weights", False),
    "classifier.bias": ("output_bias", False),
    "qa_outputs.weight": ("cls/squad/output_weights", False),
    "qa_outputs.bias": ("cls/squad/output_bias", False),
    "cls.predictions.bias": ("cls/predictions/output_bias", False),
    "cls.predictions.transform.dense.weight": ("cls/predictions/transform/dense/kernel", True),
    "cls.predictions.transform.dense.bias": ("cls/predictions/transform/dense/bias", False),
    "cls.predictions.transform.LayerNorm.weight": (
        "cls/predictions/transform/LayerNorm/gamma",
        False,
    ),
    "cls.predictions.transform.LayerNorm.bias": (
        "cls/predictions/transform/LayerNorm/beta",
        False,
    ),
    "cls.seq_relationship.weight": ("cls/seq_relationship/output_weights", False),
    "cls.seq_relationship.bias": ("cls/seq_relationship/output_bias", False),
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
    """Reads a checkpoint of google-research/bert.

    Args:
        prefix: The files' common prefix, for example `.../bert_model.ckpt`; beside them are
            `bert_config.json` and, optionally, `vocab.txt`.
        values: Whether the arrays hold the values; otherwise zeros, without TensorFlow.

    Returns:
        The checkpoint. Heads have Hugging Face's names; the state of the optimizer is left out and
        reported.

    Raises:
        ValueError: If the configuration is missing or variables are missing, unknown or of a wrong
            shape; each is named.
        ImportError: If TensorFlow is not installed.
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
    heads = {hf: names for hf, names in _HEADS.items() if names[0] in found}
    known |= {name for name, _ in heads.values()}
    training = sorted(name for name in set(found) - known if _TRAINING.fullmatch(name))
    if training:
        report.append(f"Left out {len(training)} variables of training: {', '.join(training)}.")
    if heads:
        report.append(f"Kept the tensors of heads: {', '.join(heads)}.")
    check_tensors(table, found, set(found) - known - set(training), f"`{prefix}`")
    vocabulary_path, tokens = find_vocabulary(directory, config["vocabulary_size"])
    lowercase, reason = resolve_lowercase(directory, raw, tokens)
    report.append(reason)
    return Checkpoint(
        config=config,
        arrays=assemble(table, variables.load),
        heads={hf: _orient(variables.load(name), t) for hf, (name, t) in heads.items()},
        vocabulary_path=vocabulary_path,
        lowercase=lowercase,
        format="tf1_bert",
        report=report,
        vocabulary_tokens=tokens if vocabulary_path is None else None,
    )


def write_tf1_bert(
    checkpoint: Checkpoint, directory: str | os.PathLike[str], overwrite: bool = False
) -> Path:
    """Writes `bert_model.ckpt.*`, `bert_config.json` and `vocab.txt` for google-research/bert.

    The variables are float32, which that code requires. No `.meta` file (the graph) is written:
    the code does not read it.

    Args:
        checkpoint: The checkpoint to write.
        directory: The folder to make.
        overwrite: Whether an existing folder may be replaced.

    Returns:
        The prefix of the files, the value of `--init_checkpoint`.

    Raises:
        ValueError: If arrays do not fit the configuration, or the format has no such head.
        FileExistsError: If the folder exists and `overwrite` is False.
        ImportError: If TensorFlow is not installed.
    """
    check_arrays(checkpoint.config, checkpoint.arrays, "`checkpoint`")
    unknown = [name for name in checkpoint.heads if name not in _HEADS]
    if unknown:
        raise ValueError(
            f"`heads` must be among {', '.join(_HEADS)}. Received: {', '.join(unknown)}"
        )
    raw = config_to_google(checkpoint.config)
    table = weight_table(checkpoint.config, _NAMES, _BLOCK_NAMES)
    table = without_absent_pooler(table, _present(checkpoint), [])
    variables = disassemble(table, checkpoint.arrays)
    for hf, array in checkpoint.heads.items():
        name, transposed = _HEADS[hf]
        variables[name] = _orient(array, transposed)
    tensorflow = import_tensorflow("Writing a TensorFlow 1 checkpoint")
    names = sorted(variables)
    vocabulary = checkpoint.vocabulary_bytes()
    with atomic_directory(directory, overwrite=overwrite) as folder:
        (folder / CONFIG).write_text(json_text(raw), encoding="utf-8")
        tensorflow.raw_ops.SaveV2(
            prefix=str(folder / PREFIX),
            tensor_names=names,
            shape_and_slices=[""] * len(names),
            tensors=[tensorflow.constant(variables[name].astype(np.float32)) for name in names],
        )
        if vocabulary is not None:
            (folder / "vocab.txt").write_bytes(vocabulary)
    return Path(directory) / PREFIX


def _orient(array: np.ndarray, transposed: bool) -> np.ndarray:
    """Returns the array, transposed where the two formats differ."""
    return np.ascontiguousarray(array.T) if transposed else array


def _present(checkpoint: Checkpoint) -> list[str]:
    """Returns this format's names of the arrays, which show whether there is a pooler."""
    return [_NAMES[name][0] for name in checkpoint.arrays if name in _NAMES]

"""The one entry that reads every format."""

import os
from collections.abc import Callable
from pathlib import Path

from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.checkpoints.detection import detect_format
from kbert.checkpoints.huggingface.files import read_huggingface
from kbert.checkpoints.native.adapter_folder import read_adapters
from kbert.checkpoints.native.encoder_folder import read_native
from kbert.checkpoints.pretrained import resolve
from kbert.checkpoints.tensorflow.model_garden import read_model_garden
from kbert.checkpoints.tensorflow.tf1_bert import read_tf1_bert


def _read_adapters(path: Path) -> Checkpoint:
    return read_adapters(path, read_checkpoint)


_READERS: dict[str, Callable[..., Checkpoint]] = {
    "kbert": read_native,
    "huggingface": read_huggingface,
    "tf1_bert": read_tf1_bert,
    "model_garden": read_model_garden,
    "kbert_adapters": _read_adapters,
}


def read_checkpoint(name_or_path: str | os.PathLike[str], values: bool = True) -> Checkpoint:
    """Reads a BERT encoder from any format that kbert knows.

    Args:
        name_or_path: A folder, the prefix of TensorFlow's files (`.../bert_model.ckpt`), or a name
            that `pretrained.resolve` knows ("bert-base-uncased", "org/name").
        values: Whether the arrays hold the values. Where only TensorFlow can read them they are
            zeros else, of the right shapes and types, and TensorFlow is not imported.

    Returns:
        The checkpoint; its `report` tells what was decided while reading.

    Raises:
        ValueError: If it is no checkpoint, or does not hold just a BERT encoder and its heads.
        FileNotFoundError: If nothing is there, or the name is not known.
        OSError: If the name's source cannot be reached.
    """
    found = detect_format(resolve(name_or_path))
    if not values and found.name in ("tf1_bert", "model_garden"):
        return _READERS[found.name](found.path, values=False)
    return _READERS[found.name](found.path)

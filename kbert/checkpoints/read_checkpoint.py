"""Detection of checkpoint formats, and functions that read and write any of them.

The modules of the formats are imported when a checkpoint has the format: most runs read one.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbert.architectures import loaded
from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.checkpoints.arrays.checkpoint_files import FORMAT_FILES, GRAPH_KEY
from kbert.checkpoints.huggingface_files import INDEX, WEIGHTS
from kbert.checkpoints.pretrained import resolve
from kbert.storage.json_files import read_json_object

_ROOM = "kbert.checkpoints"
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt")
# What `kbert export --format` writes.
_NETWORKS = ("*.onnx", "*.tflite")
_MAX_LISTED = 20
# Format -> its reader, and format -> its writer, by their names in this folder.
_READERS = {
    "kbert": "encoder_folder.read_native",
    "kbert_adapters": "adapter_folder.read_adapters",
    "huggingface": "huggingface_files.read_huggingface",
    "tf1_bert": "tensorflow.tf1_bert.read_tf1_bert",
    "model_garden": "tensorflow.model_garden.read_model_garden",
}
WRITERS = {
    "kbert": "encoder_folder.write_native",
    "huggingface": "huggingface_files.write_huggingface",
    "tf1": "tensorflow.tf1_bert.write_tf1_bert",
}


@dataclass(frozen=True)
class DetectedFormat:
    """A detected format, and the path for its reader: a folder, or a prefix of TensorFlow's files.

    The name is "kbert", "kbert_adapters", "huggingface", "tf1_bert" or "model_garden".
    """

    name: str
    path: Path


def detect_format(path: str | os.PathLike[str], argument: str = "path") -> DetectedFormat:
    """Detects the format of a checkpoint; no weights are read.

    `path` is a folder, its `model.safetensors`, `config.json` or `kbert.json`, or a prefix of
    TensorFlow's files such as `.../bert_model.ckpt`, optionally with `.index` at its end. Errors
    name it as `argument`.

    Raises a FileNotFoundError if there is nothing, and a ValueError if it is not a checkpoint that
    kbert reads; the message lists what was found. Weights in a pickle are refused, with the reason.
    """
    try:
        return _detected(Path(path))
    except (FileNotFoundError, ValueError) as error:
        if argument == "path":
            raise
        kind = ValueError if isinstance(error, ValueError) else FileNotFoundError
        raise kind(str(error).replace("`path`", f"`{argument}`", 1)) from error


def _detected(path: Path) -> DetectedFormat:
    prefix = path.with_suffix("") if path.suffix == ".index" else path
    if not path.is_dir() and Path(f"{prefix}.index").is_file():
        return _tensorflow_format(prefix)
    if not path.exists():
        raise FileNotFoundError(
            f"`path` must be a folder or the prefix of TensorFlow's files. There is nothing at "
            f"path={str(path)!r}"
        )
    known = (*(FORMAT_FILES[name] for name in _READERS if name in FORMAT_FILES), WEIGHTS, INDEX)
    folder = path.parent if path.is_file() and path.name in known else path
    if folder.is_dir():
        for name in ("kbert", "kbert_adapters"):
            if (folder / FORMAT_FILES[name]).is_file():
                return DetectedFormat(name, folder)
        if is_translation(folder):
            raise ValueError(
                "`path` must hold a BERT encoder. Received: a translation model, which "
                f"`kbert.load` and `Translator.from_pretrained` read, in `{folder}`"
            )
        if (folder / FORMAT_FILES["captioning"]).is_file():
            raise ValueError(
                "`path` must hold a BERT encoder. Received: a captioning model, which `kbert.load` "
                f"and `Captioner.from_pretrained` read, in `{folder}`"
            )
        weights = (folder / WEIGHTS, folder / INDEX)
        if (folder / FORMAT_FILES["huggingface"]).is_file() and any(map(Path.is_file, weights)):
            return DetectedFormat("huggingface", folder)
        prefixes = _prefixes(folder)
        if prefixes:
            return _tensorflow_format(_choose(folder, prefixes))
    raise _no_checkpoint(folder)


def _prefixes(folder: Path) -> list[str]:
    names = [file.name.removesuffix(".index") for file in folder.glob("*.index")]
    return sorted(name for name in names if any(folder.glob(f"{name}.data-*")))


def _choose(folder: Path, prefixes: list[str]) -> Path:
    """Returns the only prefix, or the latest one by TensorFlow's own `checkpoint` file."""
    if len(prefixes) == 1:
        return folder / prefixes[0]
    state = folder / "checkpoint"
    if state.is_file():
        text = state.read_text(encoding="utf-8", errors="replace")
        latest = re.search(r'^model_checkpoint_path: "(.*)"$', text, flags=re.MULTILINE)
        if latest and Path(latest[1]).name in prefixes:
            return folder / Path(latest[1]).name
    raise ValueError(
        f"`path` must name one of the checkpoints in `{folder}`, as `folder/prefix`. "
        f"Found: {', '.join(prefixes)}"
    )


def _tensorflow_format(prefix: Path) -> DetectedFormat:
    """Distinguishes TF1 and TF2 checkpoints without TensorFlow."""
    # The index is a sorted table of keys. The object graph's key comes before all names that begin
    # with a lower-case letter, so it is stored in full, not as a difference from the previous key.
    index = Path(f"{prefix}.index").read_bytes()
    if not any(prefix.parent.glob(f"{prefix.name}.data-*")):
        raise ValueError(
            f"`path` must have its data beside its index. Missing: `{prefix}.data-00000-of-00001`"
        )
    return DetectedFormat("model_garden" if GRAPH_KEY.encode() in index else "tf1_bert", prefix)


def _no_checkpoint(path: Path) -> ValueError:
    if path.is_dir():
        names = sorted(file.name + "/" * file.is_dir() for file in path.iterdir())
        more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
        found = (", ".join(names[:_MAX_LISTED]) + more) if names else "nothing"
        pickles = sorted(file.name for pattern in _PICKLES for file in path.glob(pattern))
    else:
        found = path.name
        pickles = [path.name] if any(map(path.match, _PICKLES)) else []
    if pickles:
        return ValueError(
            f"`{path}` must hold its weights as safetensors. Received: {', '.join(pickles)}, which "
            "is a Python pickle: opening it can run any code that it contains, so kbert never "
            "does. Convert it where you trust it: load it with transformers and call "
            "`save_pretrained(folder)`, which writes model.safetensors."
        )
    if path.suffix == ".keras":
        return ValueError(
            f"`path` must be a checkpoint. Received: `{path}`, a file of Keras' `save`, which "
            "`kbert.load` reads"
        )
    networks = [name for kind in _NETWORKS for name in sorted(p.name for p in path.glob(kind))]
    if networks:
        return ValueError(
            f"`path` must be a checkpoint. Received: `{path}`, the network {', '.join(networks)} "
            "for other runtimes, of which its README.md tells"
        )
    return ValueError(
        "`path` must be a checkpoint: kbert's own folder (kbert.json), Hugging Face's (config.json "
        "and model.safetensors), google-research/bert's (bert_config.json and bert_model.ckpt.*) "
        f"or Model Garden's (ckpt-*.index and its data). Found in `{path}`: {found}"
        f"{_inside(path)}"
    )


def _inside(path: Path) -> str:
    """Lists the runs and models in a folder that was given instead of one of them."""
    if not path.is_dir():
        return ""
    kinds = ("kbert", "translation", "captioning", "huggingface")
    marks = (*(FORMAT_FILES[kind] for kind in kinds), "metrics.json")
    marked = [d for d in sorted(path.iterdir()) if any((d / mark).is_file() for mark in marks)]
    names = ", ".join(f"`{folder}`" for folder in marked[:_MAX_LISTED])
    return f". Name one of the runs or models in it: {names}" if names else ""


def is_translation(directory: str | os.PathLike[str]) -> bool:
    """Returns whether a path is a folder of a translator that kbert wrote."""
    return (Path(directory) / FORMAT_FILES["translation"]).is_file()


def is_marian(directory: str | os.PathLike[str]) -> bool:
    """Returns whether a path is a folder whose `config.json` is of a Marian model."""
    config = Path(directory) / FORMAT_FILES["huggingface"]
    return config.is_file() and read_json_object(config).get("model_type") == "marian"


def read_checkpoint(name_or_path: str | os.PathLike[str], values: bool = True) -> Checkpoint:
    """Reads an encoder from any format that kbert knows.

    `name_or_path` is a folder, the prefix of TensorFlow's files (`.../bert_model.ckpt`), or a name
    that `pretrained.resolve` knows ("bert-base-uncased", "org/name"). Without `values` the arrays
    of TensorFlow checkpoints are zeros, of the right shapes and dtypes, and TensorFlow is not
    imported.

    Raises a ValueError if it is not a checkpoint, or not of exactly an encoder and its heads, a
    FileNotFoundError if the path does not exist and the name is unknown, and an OSError if the
    name's source cannot be reached.
    """
    found = detect_format(resolve(name_or_path))
    more: dict[str, Any] = {}
    if found.name in ("tf1_bert", "model_garden"):
        more = {"values": values}
    elif found.name == "kbert_adapters":
        more = {"read_base": read_checkpoint}
    read: Checkpoint = loaded(f"{_ROOM}.{_READERS[found.name]}")(found.path, **more)
    return read


def write_checkpoint(
    checkpoint: Checkpoint,
    directory: str | os.PathLike[str],
    format: str,
    overwrite: bool = False,
    **kwargs: Any,
) -> Path:
    """Writes an encoder in a format of `WRITERS`, whose function has the `kwargs` and the errors.

    Returns the path that was written: the folder, or the prefix of TensorFlow's files. Raises a
    ValueError for adapters, or for layers on a frozen encoder, which only kbert's format has.
    """
    checkpoint.check_format(format)
    write = loaded(f"{_ROOM}.{WRITERS[format]}")
    written: Path = write(checkpoint, directory, overwrite=overwrite, **kwargs)
    return written

"""Which format a folder or a file prefix is in, and the one function that reads them all."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.checkpoints.huggingface import files as huggingface
from kbert.checkpoints.huggingface.files import read_huggingface
from kbert.checkpoints.native import adapter_folder
from kbert.checkpoints.native import encoder_folder as native
from kbert.checkpoints.native import translation_folder
from kbert.checkpoints.native.adapter_folder import read_adapters
from kbert.checkpoints.native.encoder_folder import read_native
from kbert.checkpoints.pretrained import resolve
from kbert.checkpoints.tensorflow.model_garden import read_model_garden
from kbert.checkpoints.tensorflow.object_graph import GRAPH_KEY
from kbert.checkpoints.tensorflow.tf1_bert import read_tf1_bert

_PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt")
_MAX_LISTED = 20


@dataclass(frozen=True)
class DetectedFormat:
    """What was found.

    Attributes:
        name: "kbert", "kbert_adapters", "huggingface", "tf1_bert" or "model_garden".
        path: What the format's reader takes: a folder, or a prefix of TensorFlow's files.
    """

    name: str
    path: Path


def detect_format(path: str | os.PathLike[str]) -> DetectedFormat:
    """Looks at a folder, a file in it or a prefix of TensorFlow's files; reads no weights.

    Args:
        path: The folder, its `model.safetensors`, `config.json` or `kbert.json`, or a prefix such
            as `.../bert_model.ckpt`, also with the `.index` at its end.

    Returns:
        The format.

    Raises:
        FileNotFoundError: If there is nothing at `path`.
        ValueError: If it is no checkpoint that kbert reads; what was found is listed. Weights in a
            pickle are refused, with the reason.
    """
    path = Path(path)
    prefix = path.with_suffix("") if path.suffix == ".index" else path
    if not path.is_dir() and Path(f"{prefix}.index").is_file():
        return _tensorflow_format(prefix)
    if not path.exists():
        raise FileNotFoundError(
            f"`path` must be a folder or the prefix of TensorFlow's files. There is nothing at "
            f"path={str(path)!r}"
        )
    files = (huggingface.CONFIG, huggingface.WEIGHTS, huggingface.INDEX)
    known = (native.CONFIG, adapter_folder.CONFIG, *files)
    folder = path.parent if path.is_file() and path.name in known else path
    if folder.is_dir():
        if (folder / native.CONFIG).is_file():
            return DetectedFormat("kbert", folder)
        if (folder / adapter_folder.CONFIG).is_file():
            return DetectedFormat("kbert_adapters", folder)
        if translation_folder.is_translation(folder):
            raise ValueError(
                "`path` must hold a BERT encoder. Received: a translation model, which "
                f"`kbert.load` and `Translator.from_pretrained` read, in `{folder}`"
            )
        weights = (folder / huggingface.WEIGHTS, folder / huggingface.INDEX)
        if (folder / huggingface.CONFIG).is_file() and any(map(Path.is_file, weights)):
            return DetectedFormat("huggingface", folder)
        prefixes = _prefixes(folder)
        if prefixes:
            return _tensorflow_format(_choose(folder, prefixes))
    raise _no_checkpoint(folder)


def _prefixes(folder: Path) -> list[str]:
    """The prefixes of TensorFlow's files in a folder."""
    names = [file.name.removesuffix(".index") for file in folder.glob("*.index")]
    return sorted(name for name in names if any(folder.glob(f"{name}.data-*")))


def _choose(folder: Path, prefixes: list[str]) -> Path:
    """The only prefix, or the one that TensorFlow's own `checkpoint` file calls the latest."""
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
    """TF1 or TF2, without TensorFlow."""
    # The index is a sorted table of keys. The object graph's key comes before all names that begin
    # with a small letter, so it stands there in full, not as a difference from the key before it.
    index = Path(f"{prefix}.index").read_bytes()
    if not any(prefix.parent.glob(f"{prefix.name}.data-*")):
        raise ValueError(
            f"`path` must have its data beside its index. Missing: `{prefix}.data-00000-of-00001`"
        )
    return DetectedFormat("model_garden" if GRAPH_KEY.encode() in index else "tf1_bert", prefix)


def _no_checkpoint(path: Path) -> ValueError:
    """The error for something that is no checkpoint."""
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
    return ValueError(
        "`path` must be a checkpoint: kbert's own folder (kbert.json), Hugging Face's (config.json "
        "and model.safetensors), google-research/bert's (bert_config.json and bert_model.ckpt.*) "
        f"or Model Garden's (ckpt-*.index and its data). Found in `{path}`: {found}"
        f"{_inside(path)}"
    )


def _inside(path: Path) -> str:
    """Names the runs and models that lie in a folder given in their place."""
    if not path.is_dir():
        return ""
    marks = ("kbert.json", "translation.json", "config.json", "metrics.json")
    marked = [d for d in sorted(path.iterdir()) if any((d / mark).is_file() for mark in marks)]
    names = ", ".join(f"`{folder}`" for folder in marked[:_MAX_LISTED])
    return f". Name one of the runs or models in it: {names}" if names else ""


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

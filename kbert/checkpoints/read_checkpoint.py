"""Detection of checkpoint formats, and the one function that reads them all."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kbert.checkpoints import adapter_folder, encoder_folder, huggingface_files, translation_folder
from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.checkpoints.pretrained import resolve
from kbert.checkpoints.tensorflow.model_garden import read_model_garden
from kbert.checkpoints.tensorflow.object_graph import GRAPH_KEY
from kbert.checkpoints.tensorflow.tf1_bert import read_tf1_bert

_PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt")
_MAX_LISTED = 20


@dataclass(frozen=True)
class DetectedFormat:
    """A detected format, and the path for its reader: a folder, or a prefix of TensorFlow's files.

    The name is "kbert", "kbert_adapters", "huggingface", "tf1_bert" or "model_garden".
    """

    name: str
    path: Path


def detect_format(path: str | os.PathLike[str]) -> DetectedFormat:
    """Detects the format of a checkpoint; no weights are read.

    `path` is a folder, its `model.safetensors`, `config.json` or `kbert.json`, or a prefix of
    TensorFlow's files such as `.../bert_model.ckpt`, optionally with `.index` at its end.

    Raises a FileNotFoundError if there is nothing, and a ValueError if it is not a checkpoint that
    kbert reads; the message lists what was found. Weights in a pickle are refused, with the reason.
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
    files = (huggingface_files.CONFIG, huggingface_files.WEIGHTS, huggingface_files.INDEX)
    known = (encoder_folder.CONFIG, adapter_folder.CONFIG, *files)
    folder = path.parent if path.is_file() and path.name in known else path
    if folder.is_dir():
        if (folder / encoder_folder.CONFIG).is_file():
            return DetectedFormat("kbert", folder)
        if (folder / adapter_folder.CONFIG).is_file():
            return DetectedFormat("kbert_adapters", folder)
        if translation_folder.is_translation(folder):
            raise ValueError(
                "`path` must hold a BERT encoder. Received: a translation model, which "
                f"`kbert.load` and `Translator.from_pretrained` read, in `{folder}`"
            )
        weights = (folder / huggingface_files.WEIGHTS, folder / huggingface_files.INDEX)
        if (folder / huggingface_files.CONFIG).is_file() and any(map(Path.is_file, weights)):
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
    configs = [part.CONFIG for part in (encoder_folder, translation_folder, huggingface_files)]
    marks = (*configs, "metrics.json")
    marked = [d for d in sorted(path.iterdir()) if any((d / mark).is_file() for mark in marks)]
    names = ", ".join(f"`{folder}`" for folder in marked[:_MAX_LISTED])
    return f". Name one of the runs or models in it: {names}" if names else ""


_READERS: dict[str, Callable[..., Checkpoint]] = {
    "kbert": encoder_folder.read_native,
    "huggingface": huggingface_files.read_huggingface,
    "tf1_bert": read_tf1_bert,
    "model_garden": read_model_garden,
    "kbert_adapters": lambda path: adapter_folder.read_adapters(path, read_checkpoint),
}


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
    more = {"values": values} if found.name in ("tf1_bert", "model_garden") else {}
    return _READERS[found.name](found.path, **more)

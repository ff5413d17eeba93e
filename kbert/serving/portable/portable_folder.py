"""Folders of networks for other runtimes: settings, tokenizer and card beside the network's file.

A folder is plain, without versions: `config.json` and `tokenizer_config.json` as Hugging Face's
libraries read them, `tokenizer.json` for `tokenizers`, and `README.md` for people.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from kbert import __version__
from kbert.architectures import encoder_layout
from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.checkpoints.arrays.tokenizer_files import tokenizer_config
from kbert.checkpoints.huggingface_config import config_to_huggingface, set_labels
from kbert.checkpoints.huggingface_files import CONFIG
from kbert.pipelines.saved_pipeline import pipeline_checkpoint
from kbert.pipelines.window_batching import WindowBatching
from kbert.serving.export.base_files import table, training_lines
from kbert.serving.format.version_folders import new_version
from kbert.serving.portable.tokenizer_json import tokenizer_json
from kbert.storage.files import atomic_directory
from kbert.storage.json_files import json_text
from kbert.tasks.registry import all_tasks

TOKENIZER = "tokenizer.json"
README = "README.md"
# How texts become what goes in, for the card.
TEXTS = (
    "Token ids go in, which `tokenizer.json` makes of texts (Hugging Face's `tokenizers`, in any "
    "language); numbers come out, before any softmax. Rows need one real token at least."
)
# The class of transformers of a model that has no head there.
_ENCODER_ALONE = "BertModel"


class NetworkTensor(NamedTuple):
    """An input or output of a network, with sizes, or names of axes of any size."""

    name: str
    dtype: str
    shape: Sequence[str | int]


# Inputs and outputs of a network.
Tensors = tuple[Sequence[NetworkTensor], Sequence[NetworkTensor]]


@contextmanager
def portable_folder(base: str | os.PathLike[str], name: str) -> Iterator[Path]:
    """Yields a folder to fill, which becomes BASE/<name> as a whole, or not at all.

    Raises:
        ValueError: `name` is no name of a model.
        FileExistsError: the folder is there already.
    """
    folder = new_version(base, name)[0].parent  # raises for a wrong name or base
    if folder.exists():
        raise FileExistsError(
            f"`name` must be that of a folder that is not there yet. Received: {folder}"
        )
    with atomic_directory(folder) as partial:
        yield partial


def write_settings(folder: Path, model: Any) -> None:
    """Writes `config.json`, `tokenizer_config.json` and `tokenizer.json` of a model on texts."""
    checkpoint = pipeline_checkpoint(model)
    files = {
        CONFIG: json_text(_config(model, checkpoint)),
        "tokenizer_config.json": json_text(tokenizer_config(checkpoint)),
        TOKENIZER: tokenizer_json(model.tokenizer, **_lengths(model)),
    }
    for file, content in files.items():
        (folder / file).write_text(content, encoding="utf-8")


def _config(model: Any, checkpoint: Checkpoint) -> dict[str, Any]:
    """Returns the configuration as transformers has it, and under "kbert" the model's own."""
    layout, named = encoder_layout(checkpoint.architecture), model.huggingface_architecture
    own = {} if named is None else model.huggingface_config()
    given = layout.huggingface.class_of(named or _ENCODER_ALONE), "float32", layout
    raw = config_to_huggingface(checkpoint.config, own, *given)
    if "id2label" in own:
        set_labels(raw, len(own["id2label"]))
    # What a program needs to read texts and decode outputs as the model does.
    settings = {key: getattr(model, key) for key in model.arguments if key != "labels"}
    return {**raw, "kbert": {"class": type(model).__name__, "version": __version__, **settings}}


def _lengths(model: Any) -> dict[str, Any]:
    longest = {"max_sequence_length": model.max_sequence_length}
    if not isinstance(model.batching, WindowBatching):
        return longest
    return {**longest, "stride": model.stride, "has_questions": model.has_questions}


def write_card(
    folder: Path,
    name: str,
    model: Any,
    networks: Mapping[str, Tensors],
    notes: Sequence[str],
    about: Mapping[str, Any] | None,
) -> None:
    """Writes the card: what the networks do, their inputs and outputs, and their training.

    `networks` are the tensors by the file's name; `notes` say what runs the files, and how texts
    become what goes in; `about` are the facts about the training that
    `kbert.serving.export.base_files.write_card` takes.
    """
    kind = type(model).__name__
    does = {task.model_name: f": it {task.does}" for task in all_tasks()}.get(kind, "")
    size = sum(file.stat().st_size for file in folder.iterdir())
    lines = [f"# {name}", "", f"The network of a {kind} of kbert {__version__}{does}."]
    for note in notes:
        lines += ["", note]
    for file, tensors in networks.items():
        lines += ["", f"`{file}`:"] if len(networks) > 1 else []
        rows = [
            (part, f"`{one.name}`", one.dtype, ", ".join(map(str, one.shape)))
            for part, some in zip(("input", "output"), tensors, strict=True)
            for one in some
        ]
        lines += table(("", "name", "type", "shape"), rows)
    lines += [
        "",
        f"{size:,} bytes, float32. Names of labels, lengths and how the outputs are read: "
        f"`{CONFIG}`.",
        "",
        *training_lines(about or {}),
    ]
    (folder / README).write_text("\n".join(lines) + "\n", encoding="utf-8")

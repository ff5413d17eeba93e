"""Kinds of models by path or name, without importing TensorFlow, which takes seconds."""

import os
import re
from pathlib import Path
from typing import Any

from kbert.checkpoints.captioning_folder import is_captioning
from kbert.checkpoints.pretrained import find_name
from kbert.checkpoints.read_checkpoint import (
    detect_format,
    is_marian,
    is_translation,
    read_checkpoint,
)
from kbert.data.tables.table import nearest
from kbert.serving.format.version_folders import exports_in, find_export, read_metadata
from kbert.tasks.registry import FINETUNED, task_of_checkpoint
from kbert.training.config.captioning_config import TASK as CAPTIONING
from kbert.training.config.translation_config import TASK as TRANSLATION
from kbert.training.runs.run_directory import is_run, load_run

# The format of models that embed texts, of which an encoder is a part.
MODULES_FORMAT = "sentence-transformers"
# The start of an address, of which `Path` keeps one slash; one letter is a drive of Windows.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+")
# That of `kbert.serving.format.signatures`, which imports TensorFlow.
_SIGNATURE = "serving_default"
_OF_TRANSLATORS = ("kbert", "ctranslate2")


def check_model(path: str | os.PathLike[str], exports: bool = True) -> None:
    """Raises an error for what is no run, export (if these are allowed), model's folder or name."""
    _check_no_address(path)
    if is_run(path):
        load_run(path).model_directory
    elif is_export(path):
        if not exports:
            raise ValueError(
                "`RUN` must be a run or a model's folder. Received: "
                f"{os.fspath(path)!r}, which is an export"
            )
    elif not is_translator(path) and not is_captioning(path) and Path(path).suffix != ".keras":
        found = find_name(path, "RUN")
        if isinstance(found, Path):
            try:
                detect_format(found)
            except ValueError:
                if exports and exports_in(found):
                    find_export(found)  # its error names the exports in the folder
                raise


def _check_no_address(path: str | os.PathLike[str]) -> None:
    """Raises a ValueError for the address of a server."""
    found = _SCHEME.match(os.fspath(path))
    if found and not os.path.exists(path):
        address = f"{found[1]}://{os.fspath(path)[found.end():]}"
        raise ValueError(
            f"`RUN` must be a path or a name. Received: {address!r}, an address; a server is asked "
            "with kbert.serving.Client (docs/serving.md)"
        )


def is_export(path: str | os.PathLike[str]) -> bool:
    """Returns whether a folder is an export: BASE/<model>, or BASE/<model>/<version>."""
    try:
        find_export(path)
    except FileNotFoundError:
        return False
    return True


def is_translator(path: str | os.PathLike[str]) -> bool:
    """Returns whether a path is a folder of a translator, kbert's own or Marian's."""
    return is_translation(path) or is_marian(path)


def check_format(model: str | os.PathLike[str], format: str) -> None:
    """Raises a ValueError for a format of `kbert convert` that does not fit the model's kind."""
    if is_translator(model):
        if format not in _OF_TRANSLATORS:
            raise ValueError(
                f"`--format` must be one of {', '.join(_OF_TRANSLATORS)} for a translator. "
                f"Received: {format!r}"
            )
    elif is_captioning(model):
        raise ValueError(
            "`SRC` must be no captioner: kbert's own is the only format of those. "
            f"Received: {os.fspath(model)}"
        )
    elif format == "ctranslate2":
        raise ValueError(
            "`SRC` must be a translator for the format ctranslate2, a run or folder of kbert or a "
            f"Marian folder. Received: {os.fspath(model)}"
        )
    elif format == MODULES_FORMAT and task_of(model) != "embedding":
        raise ValueError(
            f"`SRC` must be a model that embeds texts for the format {MODULES_FORMAT}. "
            f"Received: {os.fspath(model)}"
        )


def check_task_of_export(path: str | os.PathLike[str], task: str | None) -> None:
    """Raises a ValueError if a path that `check_model` accepts is no export with the task."""
    if task is None:
        return
    if is_run(path) or not is_export(path):
        raise ValueError(
            f"`--task` must be given for an export of several tasks only. Received: {task!r}"
        )
    tasks = list(read_metadata(find_export(path)).get("tasks") or {})
    if task not in tasks:
        known = f"one of {tasks}" if tasks else "left out: there is but one"
        near = nearest(task, tasks)
        raise ValueError(f"`--task` must be {known}. Received: {task!r}{'.' if near else ''}{near}")


def inputs_of(path: str | os.PathLike[str], task: str | None = None) -> tuple[str, ...] | None:
    """Returns the names of a model's inputs; None where only the loaded model can tell them.

    The path is one that `check_model` and `check_task_of_export` accept.
    """
    if not is_run(path) and is_export(path):
        signatures = read_metadata(find_export(path)).get("signatures") or {}
        inputs = signatures.get(_SIGNATURE if task is None else task, {}).get("inputs")
        return tuple(one["name"] for one in inputs) if inputs else None
    folder = load_run(path).model_directory if is_run(path) else Path(path)
    if not folder.is_dir() or is_translator(folder) or is_captioning(folder):
        return None
    checkpoint = read_checkpoint(folder)
    pair = checkpoint.pipeline.get("pair")
    if pair is None or task_of_checkpoint(checkpoint) is None:
        return None
    return ("text_a", "text_b") if pair else ("text",)


def columns_of(run: str | os.PathLike[str], given: dict[str, str | None]) -> dict[str, Any]:
    """Returns the columns of examples to evaluate a run on, by default those of its training.

    `given` are `text_a`, `text_b` and `label`, by name or index; None for the run's own.
    """
    chosen: dict[str, Any] = {
        name: int(value) if value.isdecimal() else value
        for name, value in given.items()
        if value is not None
    }
    config = load_run(run).config if is_run(run) else None
    # Those of a run on GLUE do not apply: its files have others.
    if getattr(config, "task", None) in FINETUNED and getattr(config, "glue", None) is None:
        return {**{name: getattr(config, name) for name in given}, **chosen}
    return chosen


def task_of(run: str | os.PathLike[str]) -> str:
    """Returns the task of a run, or of a folder of a saved model."""
    if is_run(run):
        return load_run(run).config.task
    if is_translator(run):
        return TRANSLATION
    if is_captioning(run):
        return CAPTIONING
    task = task_of_checkpoint(read_checkpoint(run))
    return FINETUNED[0] if task is None else task.name

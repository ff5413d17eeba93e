"""Kinds of models by path or name, without importing TensorFlow, which takes seconds."""

import itertools
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kbert.checkpoints.captioning_folder import is_captioning
from kbert.checkpoints.pretrained import find_name, resolve
from kbert.checkpoints.read_checkpoint import (
    detect_format,
    is_marian,
    is_translation,
    read_checkpoint,
)
from kbert.hints import nearest
from kbert.serving.batch_prediction.file_prediction import check_columns
from kbert.serving.format.version_folders import exports_in, find_export, read_metadata
from kbert.tasks.registry import FINETUNED, finetuned_task, task_named, task_of_checkpoint
from kbert.training.config.captioning_config import TASK as CAPTIONING
from kbert.training.config.translation_config import TASK as TRANSLATION
from kbert.training.run import check_file, check_table
from kbert.training.runs.run_directory import Run, is_run, load_run

# The format of models that embed texts, of which an encoder is a part.
MODULES_FORMAT = "sentence-transformers"
# The start of an address, of which `Path` keeps one slash; one letter is a drive of Windows.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+")
# Hints at options that only `kbert evaluate` has, in errors on columns.
_COLUMN_OPTIONS = re.compile(r", as by --[a-z-]+ COLUMN| \(the number of one, [^)]*\)")
# Command-line options of a row of texts, by the inputs of the model.
_OPTIONS: dict[tuple[str, ...], str] = {
    ("text",): " (--text)",
    ("question", "context"): " (--question with --context or --context-file)",
    ("text_a", "text_b"): " (--text-a with --text-b)",
    ("context", "choices"): " (one row a line of stdin)",
}
# That of `kbert.serving.format.signatures`, which imports TensorFlow.
_SIGNATURE = "serving_default"
_OF_TRANSLATORS = ("kbert", "ctranslate2")


def check_model(
    path: str | os.PathLike[str], exports: bool = True, argument: str = "RUN"
) -> None:
    """Raises an error for what is no run, export (if these are allowed), model's folder or name."""
    _check_no_address(path, argument)
    if is_run(path):
        load_run(path).model_directory
    elif is_export(path):
        if not exports:
            raise ValueError(
                f"`{argument}` must be a run or a model's folder. Received: "
                f"{os.fspath(path)!r}, which is an export"
            )
    elif not is_translator(path) and not is_captioning(path) and Path(path).suffix != ".keras":
        found = find_name(path, argument)
        if isinstance(found, Path):
            try:
                detect_format(found, argument)
            except ValueError:
                if exports and exports_in(found):
                    find_export(found, argument)  # its error names the exports in the folder
                raise


def _check_no_address(path: str | os.PathLike[str], argument: str) -> None:
    """Raises a ValueError for the address of a server."""
    found = _SCHEME.match(os.fspath(path))
    if found and not os.path.exists(path):
        address = f"{found[1]}://{os.fspath(path)[found.end():]}"
        raise ValueError(
            f"`{argument}` must be a path or a name. Received: {address!r}, an address; a server "
            "is asked with kbert.serving.Client (docs/serving.md)"
        )


def is_export(path: str | os.PathLike[str]) -> bool:
    """Returns whether a folder is an export: BASE/<model>, or BASE/<model>/<version>."""
    try:
        find_export(path)
    except FileNotFoundError:
        return False
    return True


def local_path(path: str | os.PathLike[str]) -> Path:
    """Returns what exists as it is, and the folder of a name, which is fetched where need be."""
    return Path(path) if Path(path).exists() else resolve(path)


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


def check_texts(inputs: tuple[str, ...], rows: Sequence[tuple[str, ...]], source: str) -> None:
    """Raises a ValueError, which names the rows' source, for too few or too many texts."""
    choices = inputs == ("context", "choices")
    for row in rows:
        if len(row) >= 3 if choices else len(row) == len(inputs):
            continue
        wanted = f"one {inputs[0]}" if len(inputs) == 1 else " and ".join(inputs)
        wanted = "a context and two choices or more" if choices else wanted
        between = ", with a tab between" if len(inputs) > 1 and source.startswith("stdin") else ""
        raise ValueError(
            f"{source}: the model reads {wanted}{between}{_OPTIONS.get(inputs, '')}. Received: "
            f"{len(row)} {'text' if len(row) == 1 else 'texts'}: {', '.join(map(repr, row))}"
        )


def columns_of(
    run: str | os.PathLike[str], given: dict[str, str | None] | None = None
) -> dict[str, Any]:
    """Returns the columns of examples to evaluate a run on, by default those of its training.

    `given` are `text_a`, `text_b` and `label`, by name or index, None for the run's own; without it
    all are the run's own, and what else its files are read by.
    """
    chosen: dict[str, Any] = {
        name: int(value) if value.isdecimal() else value
        for name, value in (given or {}).items()
        if value is not None
    }
    config: Any = _run_of_model(run).config if is_run(run) else None
    # Those of a run on GLUE do not apply: its files have others.
    if getattr(config, "task", None) in FINETUNED and getattr(config, "glue", None) is None:
        all_names = ("text_a", "text_b", "label", *finetuned_task(config.task).reading)
        names = all_names if given is None else given
        return {**{name: getattr(config, name) for name in names}, **chosen}
    return chosen


def check_measured(run: Path, file: Path) -> None:
    """Checks the file of `kbert export --measure`, which has no options to name its columns.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It lacks the columns that the run was trained on, or those of the usual names.
    """
    check_file("--measure", file)
    task = task_of(run)
    if task not in FINETUNED:
        return
    try:
        check_table(task, str(file), columns_of(run))
    except ValueError as error:
        told = _COLUMN_OPTIONS.sub("", str(error))
        raise ValueError(
            f"`--measure` must have columns of the usual names, or of the run's training. {told}"
        ) from error


def check_columns_to_read(
    model: Path, source: Path, inputs: Sequence[str], given: Sequence[str | None] = ()
) -> list[list[str]]:
    """Returns `columns_to_read`; a ValueError that names the options if the file has none."""
    columns = columns_to_read(model, inputs, given)
    options = " and ".join(("--text-a COLUMN", "--text-b COLUMN")[: len(inputs)])
    verb, others = ("names", "another") if len(inputs) == 1 else ("name", "others")
    is_given = any(name is not None for name in given)
    check_columns(source, columns, "" if is_given else f"; {options} {verb} {others}")
    return columns


def columns_to_read(
    model: Path, inputs: Sequence[str], given: Sequence[str | None] = ()
) -> list[list[str]]:
    """Returns the columns of a file that a model reads: choices of one column per input.

    The first choice that exists counts. The last one is the inputs' own names, unless the columns
    of the first and second text were given. A run has the columns of its training.
    """
    named = [name for name in given if name is not None]
    if len(inputs) == 1 and any(name is not None for name in given[1:]):
        raise ValueError(
            f"`--text-b` must be left out for a model of one text. Received: {named[-1]}"
        )
    config = _run_of_model(model).config if is_run(model) else None
    task = None if config is None else task_named(config.task)
    own: Sequence[Any] = () if task is None else task.text_columns(config)
    usual = [] if task is None else task.usual_columns(len(inputs))
    last = [] if named else [list(inputs)]
    both = list(itertools.zip_longest(given, own))[: len(inputs)]
    # An index is for files without a header, which are not read here.
    texts = [[one for one in pair if isinstance(one, str)] for pair in both]
    names = [some[0] for some in texts if some]
    if len(names) == len(inputs):
        return [names, *last]
    if named:
        raise ValueError(
            "`--text-a` and `--text-b` must be given together for a model that reads "
            f"{', '.join(inputs)}. Received: {named[0]} alone"
        )
    return [*usual, *last]


def task_of(run: str | os.PathLike[str]) -> str:
    """Returns the task of a run, or of a folder of a saved model."""
    if is_run(run):
        return _run_of_model(run).config.task
    run = local_path(run)
    if is_translator(run):
        return TRANSLATION
    if is_captioning(run):
        return CAPTIONING
    task = task_of_checkpoint(read_checkpoint(run))
    return FINETUNED[0] if task is None else task.name


def _run_of_model(run: str | os.PathLike[str]) -> Run:
    """Returns the run that trained the model of a run: of a chain, that of its last stage."""
    found = load_run(run)
    stages = getattr(found.config, "stages", None)
    return load_run(found.directory / list(stages)[-1]) if stages else found

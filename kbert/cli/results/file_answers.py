"""`kbert predict --input F --output F`: all rows of a file, with a progress bar."""

import time
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from kbert.checkpoints.pretrained import resolve
from kbert.cli.models.answering import open_model
from kbert.cli.models.model_kinds import is_export
from kbert.serving.batch_prediction.file_prediction import predict_file
from kbert.serving.format.version_folders import find_export
from kbert.storage.checksums import sha256_of, sha256_of_folder
from kbert.tasks.registry import task_named
from kbert.training.runs.run_directory import is_run, load_run


def answer_file(
    model: Path,
    source: Path,
    output: Path,
    nbest: int | None,
    task: str | None,
    columns: Sequence[str | None] = (),
) -> dict[str, Any]:
    """Answers the rows of a file; the bar is shown where stderr is a terminal.

    Model, `nbest` and `task` are those of `open_model`, columns those of `columns_to_read`. Returns
    the output, the number of rows, and the seconds.
    """
    answering = open_model(model, nbest, task)
    read = columns_to_read(model, answering.inputs, columns)
    made_of: dict[str, Any] = {"model": model_checksum(model), "task": task, "nbest": nbest}
    made_of["choice of columns"] = read
    start = time.monotonic()
    console = Console(stderr=True)
    parts = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*parts, console=console, disable=not console.is_terminal) as bar:
        shown = bar.add_task(source.name, total=1.0)

        def tell(share: float, rows: int) -> None:
            bar.update(shown, completed=share, description=f"{source.name}: {rows:,} rows")

        rows = predict_file(
            source,
            output,
            answering.inputs,
            answering.answers,
            columns=read,
            made_of=made_of,
            on_progress=tell,
        )
    seconds = time.monotonic() - start
    return {"output": str(output), "rows": rows, "seconds": round(seconds, 3)}


def columns_to_read(
    model: Path, inputs: Sequence[str], given: Sequence[str | None] = ()
) -> list[list[str]]:
    """Returns the columns of a file that a model reads.

    Args:
        model: A run, which has the columns of its training; or another model.
        inputs: The names of the model's inputs.
        given: The columns of its first and second text, or None.

    Returns:
        Choices of one column per input, of which the first that exists counts. The last choice is
        the inputs' own names, unless others were given.
    """
    named = [name for name in given if name is not None]
    if len(inputs) == 1 and any(name is not None for name in given[1:]):
        raise ValueError(
            f"`--text-b` must be left out for a model of one text. Received: {named[-1]}"
        )
    config = load_run(model).config if is_run(model) else None
    task = None if config is None else task_named(config.task)
    own: Sequence[Any] = () if task is None else task.text_columns(config)
    usual = [] if task is None else task.usual_columns(len(inputs))
    last = [] if named else [list(inputs)]
    # An index is for files without a header, which are not read here.
    both = list(zip_longest(given, own))[: len(inputs)]
    names = [name for pair in both if (name := next(filter(_is_name, pair), None)) is not None]
    if len(names) == len(inputs):
        return [names, *last]
    if named:
        raise ValueError(
            "`--text-a` and `--text-b` must be given together for a model that reads "
            f"{', '.join(inputs)}. Received: {named[0]} alone"
        )
    return [*usual, *last]


def _is_name(column: Any) -> bool:
    return isinstance(column, str)


def model_checksum(model: Path) -> str:
    """Returns a checksum of all files of a run, an export, or a model's folder, file or name."""
    if is_run(model):
        return sha256_of_folder(load_run(model).model_directory)
    path = find_export(model) if is_export(model) else resolve(model)
    return sha256_of(path) if path.is_file() else sha256_of_folder(path)

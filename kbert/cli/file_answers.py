"""`kbert predict --input F --output F`: all rows of a file, with a progress bar."""

import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from kbert.checkpoints.pretrained import resolve
from kbert.cli.answering import is_export, open_model
from kbert.serving.file_prediction import predict_file
from kbert.serving.version_folders import find_export
from kbert.storage.checksums import sha256_of, sha256_of_folder
from kbert.training.run_directory import is_run, load_run


def answer_file(
    model: Path, source: Path, output: Path, nbest: int | None, task: str | None
) -> dict[str, Any]:
    """Answers the rows of a file; the bar is shown where stderr is a terminal.

    Args:
        model: A run, a model's folder or name, or an export.
        source: The file.
        output: The file to make.
        nbest: As in `kbert.cli.answering.open_model`.
        task: As there.

    Returns:
        The output, the number of rows, and the seconds, as JSON can hold them.

    Raises:
        ValueError: As `kbert.serving.file_prediction.predict_file` and `open_model`.
        FileNotFoundError: As there.
        FileExistsError: The output is there.
    """
    answering = open_model(model, nbest, task)
    made_of = {"model": model_checksum(model), "task": task, "nbest": nbest}
    start = time.monotonic()
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        shown = bar.add_task(source.name, total=1.0)

        def tell(share: float, rows: int) -> None:
            bar.update(shown, completed=share, description=f"{source.name}: {rows:,} rows")

        rows = predict_file(
            source, output, answering.inputs, answering.answers, made_of=made_of, on_progress=tell
        )
    seconds = time.monotonic() - start
    return {"output": str(output), "rows": rows, "seconds": round(seconds, 3)}


def model_checksum(model: Path) -> str:
    """A checksum of all files of a model, wherever it lies.

    Args:
        model: A run, a model's folder, file or name, or an export.
    """
    if is_run(model):
        return sha256_of_folder(load_run(model).model_directory)
    path = find_export(model) if is_export(model) else resolve(model)
    return sha256_of(path) if path.is_file() else sha256_of_folder(path)

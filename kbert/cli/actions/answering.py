"""Rows of texts in, answers out: runs, saved models and exports behind one face.

Rows come from options, from a stream of any length in constant memory, or from a file.
"""

import functools
import itertools
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import tensorflow as tf
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from kbert.checkpoints.pretrained import resolve
from kbert.cli.actions.model_kinds import (
    check_columns_to_read,
    check_task_of_export,
    check_texts,
    is_export,
)
from kbert.data.batches.plans import answers_of_rows
from kbert.data.tables.columns import without_surrogates
from kbert.serving.batch_prediction.file_prediction import predict_file
from kbert.serving.format.signatures import SERVING_DEFAULT
from kbert.serving.format.version_folders import find_export
from kbert.serving.loading.exported import load_export
from kbert.storage.files import sha256_of, sha256_of_folder
from kbert.tasks.registry import json_answer, task_of
from kbert.training.runs.load_model import load_model
from kbert.training.runs.run_directory import is_run, load_run

Row = tuple[str, ...]
_BATCH_ROWS = 32
# Outputs whose last dimension is alternatives: of a translator, and of a model that predicts words
# for each [MASK].
_NBEST = ("nbest_translation", "nbest_caption", "word")
IMAGE = "image"
_IMAGE_BYTES = 32_000_000  # of files that are in memory at a time


@dataclass(frozen=True)
class Answering:
    """A model that answers rows of texts."""

    inputs: tuple[str, ...]  # ("text",), ("text_a", "text_b"), or ("context", "choices")
    answer: Callable[..., list[dict[str, Any]]]  # one column per input -> one dict per row
    nbest: int | None = None  # of the best translations or words; None for the model's own

    @property
    def reads_images(self) -> bool:
        """True where a row is the name of an image file."""
        return self.inputs == (IMAGE,)

    def split(self, line: str, number: int) -> Row:
        """Splits a line of input, numbered for errors, at its tabs, or reads it as a JSON object.

        An object has the texts by the names of the inputs, so that a text may hold line breaks.
        """
        named = self._named(line, number)
        if named is not None:
            return named
        # A tab inside a single text is white space to a tokenizer, and is kept.
        row = (line,) if len(self.inputs) == 1 else tuple(line.split("\t"))
        self.check([row], f"stdin, line {number}")
        self.check_image(row, f"stdin, line {number}")
        return row

    def _named(self, line: str, number: int) -> Row | None:
        """Returns the row of a JSON object, or None if the line is not one."""
        if "choices" in self.inputs or not line.lstrip().startswith("{"):
            return None
        single = len(self.inputs) == 1
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:  # a number too long, or brackets too deep
            if single or line.count("\t") + 1 == len(self.inputs):
                return None
            place = f" at column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
            raise ValueError(
                f"stdin, line {number}: the line must be a JSON object or texts with a tab "
                f"between. Received: {line[:80]!r} ({getattr(error, 'msg', error)}{place})"
            ) from error
        texts, names = tuple(value.get(name) for name in self.inputs), ", ".join(self.inputs)
        if not all(isinstance(text, str) for text in texts):
            wanted = f"a text named {self.inputs[0]}" if single else f"the texts {names}"
            raise ValueError(
                f"stdin, line {number}: the object must have {wanted}. Received: {line[:80]!r}"
            )
        return encodable(texts)

    def check(self, rows: list[Row], source: str) -> None:
        """Raises a ValueError, which names the rows' source, for too few or too many texts."""
        check_texts(self.inputs, rows, source)

    def check_image(self, row: Row, place: str) -> None:
        """Raises a FileNotFoundError for a row that should be an image's file, and is not."""
        if self.reads_images and isinstance(row[0], str) and not Path(row[0]).is_file():
            raise FileNotFoundError(
                f"{place}: the image must be a file that can be read. Received: {row[0]!r:.80}"
            )

    def answers(self, rows: list[Row]) -> list[dict[str, Any]]:
        """Answers rows that `check` accepts, in their order."""
        if self.inputs == ("context", "choices"):
            return self._choices(rows)
        if self.reads_images:
            several = _image_batches(name for (name,) in rows)
            answers = [one for images in several for one in self.answer(images)]
        else:
            answers = self.answer(*(list(column) for column in zip(*rows)))
        if self.nbest is not None:
            answers = [_with_fewer(one, self.nbest) for one in answers]
        return answers

    def _choices(self, rows: list[Row]) -> list[dict[str, Any]]:
        """Answers rows of choices; those with as many of them share a batch, never a ragged one."""
        found: list[dict[str, Any]] = [{}] * len(rows)
        for width in sorted({len(row) for row in rows}):
            places = [i for i, row in enumerate(rows) if len(row) == width]
            contexts, choices = zip(*((rows[i][0], list(rows[i][1:])) for i in places))
            answers = self.answer(list(contexts), list(choices))
            for place, answer in zip(places, answers, strict=True):
                found[place] = answer
        return found


def encodable(row: Row) -> Row:
    """Returns the texts of a row with U+FFFD for what UTF-8 cannot hold, such as half an emoji."""
    return tuple(without_surrogates(text, "", "replace") for text in row)


def open_model(
    path: str | os.PathLike[str], nbest: int | None = None, task: str | None = None
) -> Answering:
    """Opens a run, a folder of a saved model, or an export, of whose signatures `task` is one.

    `nbest` is the number of the best translations, or of the best words for each [MASK]; None for
    the model's own.
    """
    check_task_of_export(path, task)
    if not is_run(path) and is_export(path):
        exported = load_export(path)
        signature = SERVING_DEFAULT if task is None else task
        outputs = exported.signatures[signature].outputs
        found = next((outputs[name] for name in _NBEST if name in outputs), None)
        _check_nbest(nbest, found is not None)
        most = None if found is None or found.shape is None else found.shape[-1]
        if nbest is not None and most is not None and nbest > most:
            raise ValueError(
                f"`--nbest` must be at most {most}, as many as the export gives: export a run with "
                f"more. Received: {nbest}"
            )
        answer = functools.partial(exported.answers, signature=signature)
        return Answering(tuple(exported.input_names(signature)), answer, nbest)
    model = load_model(path)
    kind = task_of(model)
    _check_nbest(nbest, kind is not None and kind.has_nbest)
    if nbest is not None and kind is not None:
        kind.give_more(model, nbest)
    return live_answering(model)


def _image_batches(names: Iterable[str]) -> Iterator[list[bytes]]:
    """Yields the content of image files in order, as many at a time as memory holds."""
    some: list[bytes] = []
    for name in names:
        some.append(_read_image(name))
        if sum(map(len, some)) >= _IMAGE_BYTES:
            yield some
            some = []
    if some:
        yield some


def _read_image(name: str) -> bytes:
    """Reads an image file; one that is no image is a problem of its answer, not an error."""
    try:
        return Path(name).read_bytes()
    except (OSError, ValueError) as error:  # a name with a zero byte
        raise FileNotFoundError(
            f"`IMAGE` must be a file that can be read. Received: {name!r}"
        ) from error


def _check_nbest(nbest: int | None, has_several: bool) -> None:
    if nbest is not None and not has_several:
        raise ValueError(
            "`--nbest` must be given for a translator, a captioner or a model that fills [MASK] "
            f"only. Received: {nbest}"
        )


def _with_fewer(answer: dict[str, Any], nbest: int) -> dict[str, Any]:
    """Truncates an answer to a number of translations, or of words for each [MASK]."""
    if "masks" in answer:
        masks = [{**mask, "words": mask["words"][:nbest]} for mask in answer["masks"]]
        return {**answer, "masks": masks}
    return {**answer, "nbest": answer["nbest"][:nbest]}


def live_answering(model: Any) -> Answering:
    """Wraps a model with `signatures()` as its export would be: the same function and names."""
    function, specs = model.signatures()[SERVING_DEFAULT]
    # Traced once, for batches of any size; without AutoGraph, as in an export: it takes seconds.
    compiled = tf.function(function, input_signature=specs, autograph=False)
    inputs = tuple(spec.name for spec in specs)

    def answer(*columns: list[Any]) -> list[dict[str, Any]]:
        def run(rows: np.ndarray) -> dict[str, np.ndarray]:
            found = compiled(*(tf.constant([column[i] for i in rows]) for column in columns))
            return {name: found[name].numpy() for name in sorted(found)}

        sizes = [
            sum(len(text if isinstance(text, bytes) else str(text)) for text in row)
            for row in zip(*columns, strict=True)
        ]
        return [json_answer(row) for row in answers_of_rows(run, np.array(sizes), _BATCH_ROWS)]

    return Answering(inputs, answer)


def read_batches(
    stream: BinaryIO, split: Callable[[str, int], Row], batch_size: int
) -> Iterator[list[Row]]:
    """Yields the lines of a UTF-8 stream as rows, in batches that are never empty.

    Lines end in `\\n` or `\\r\\n` only. An empty line is an empty text, so that there are as many
    answers as lines. A byte order mark at the start is skipped. `split` maps a line and its number
    (from 1) to a row.
    """
    rows = (split(_decoded(line, number), number) for number, line in enumerate(stream, start=1))
    while batch := list(itertools.islice(rows, batch_size)):
        yield batch


def _decoded(line: bytes, number: int) -> str:
    content = line.removesuffix(b"\n").removesuffix(b"\r")
    try:
        return content.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        hint = " (an image is given by the name of its file)" if number == 1 else ""
        raise ValueError(
            f"stdin, line {number}: the text must be UTF-8. Received: byte "
            f"{content[error.start]:#04x} at position {error.start}{hint}"
        ) from error


def answer_file(
    model: Path,
    source: Path,
    output: Path,
    nbest: int | None,
    task: str | None,
    columns: Sequence[str | None] = (),
    part: tuple[int, int] = (1, 1),
) -> dict[str, Any]:
    """Answers the rows of a file or part; a progress bar is shown where stderr is a terminal."""
    if not is_run(model) and is_export(model):
        model = find_export(model)  # a later version changes nothing
    made_of: dict[str, Any] = {"model": model_checksum(model), "task": task, "nbest": nbest}
    answering = open_model(model, nbest, task)
    read = check_columns_to_read(model, source, answering.inputs, columns)
    made_of["choice of columns"] = read
    start, console = time.monotonic(), Console(stderr=True)
    parts = (
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
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
            part=part,
            check=answering.check_image,
            on_progress=tell,
        )
    return {"output": str(output), "rows": rows, "seconds": round(time.monotonic() - start, 3)}


def model_checksum(model: Path) -> str:
    """Returns a checksum of all files of a run, an export, or a model's folder, file or name."""
    if is_run(model):
        return sha256_of_folder(load_run(model).model_directory)
    path = find_export(model) if is_export(model) else resolve(model)
    return sha256_of(path) if path.is_file() else sha256_of_folder(path)

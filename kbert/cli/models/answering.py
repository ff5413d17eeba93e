"""A common interface to runs, saved models and exports: rows of texts in, answers out.

Rows come from options, or from a stream of any length, in batches and constant memory.
"""

import functools
import json
import os
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np
import tensorflow as tf

from kbert.cli.models.model_kinds import check_task_of_export, is_export
from kbert.pipelines.inference.size_batches import answers_of_rows
from kbert.serving.format.signatures import SERVING_DEFAULT
from kbert.serving.loading.exported import load_export
from kbert.tasks.registry import json_answer, task_of
from kbert.training.runs.load_model import load_model
from kbert.training.runs.run_directory import is_run

Row = tuple[str, ...]
BATCH_ROWS = 32
# Outputs whose last dimension is alternatives: of a translator, and of a model that predicts words
# for each [MASK].
_NBEST = ("nbest_translation", "word")
# Command-line options of a row, where it is not a single --text.
_OPTIONS: dict[tuple[str, ...], str] = {
    ("question", "context"): " (--question with --context or --context-file)",
    ("text_a", "text_b"): " (--text-a with --text-b)",
}


class Answering:
    """A model that answers rows of texts.

    Args:
        inputs: Names of a row's texts: ("text",), ("text_a", "text_b"), or ("context", "choices").
        answer: Maps one column per input to one dict per row.
        nbest: Number of the best translations or words in an answer; None for the model's own.
    """

    def __init__(self, inputs: tuple[str, ...], answer: Any, nbest: int | None = None) -> None:
        self.inputs = inputs
        self._answer = answer
        self._nbest = nbest

    def split(self, line: str, number: int) -> Row:
        """Splits a line of input, numbered for errors, at its tabs, or reads it as a JSON object.

        Where a row holds several texts, a line may be an object with their names, so that a text
        may hold line breaks.
        """
        named = self._named(line, number)
        if named is not None:
            return named
        # A tab inside a single text is white space to a tokenizer, and is kept.
        row = (line,) if len(self.inputs) == 1 else tuple(line.split("\t"))
        self.check([row], f"stdin, line {number}")
        return row

    def _named(self, line: str, number: int) -> Row | None:
        """Returns the row of a JSON object, or None if the line is not one."""
        if len(self.inputs) == 1 or "choices" in self.inputs or not line.lstrip().startswith("{"):
            return None
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            if line.count("\t") + 1 == len(self.inputs):
                return None
            raise ValueError(
                f"stdin, line {number}: the line must be a JSON object or texts with a tab "
                f"between. Received: {line[:80]!r} ({error.msg} at column {error.colno})"
            ) from error
        texts = tuple(value.get(name) for name in self.inputs)
        if not all(isinstance(text, str) for text in texts):
            raise ValueError(
                f"stdin, line {number}: the object must have the texts {', '.join(self.inputs)}. "
                f"Received: {line[:80]!r}"
            )
        return texts

    def check(self, rows: list[Row], source: str) -> None:
        """Raises a ValueError, which names the rows' source, for too few or too many texts."""
        choices = self.inputs == ("context", "choices")
        for row in rows:
            if len(row) >= 3 if choices else len(row) == len(self.inputs):
                continue
            wanted = f"one {self.inputs[0]}" if len(self.inputs) == 1 else " and ".join(self.inputs)
            wanted = "a context and two choices or more" if choices else wanted
            between = ", with a tab between" if len(self.inputs) > 1 else ""
            options = _OPTIONS.get(self.inputs, "")
            raise ValueError(
                f"{source}: the model reads {wanted}{between}{options}. Received: {len(row)} "
                f"{'text' if len(row) == 1 else 'texts'}: {', '.join(map(repr, row))}"
            )

    def answers(self, rows: list[Row]) -> list[dict[str, Any]]:
        """Answers rows that `check` accepts, in their order."""
        if self.inputs == ("context", "choices"):
            return self._answer([row[0] for row in rows], [list(row[1:]) for row in rows])
        answers = self._answer(*(list(column) for column in zip(*rows)))
        if self._nbest is not None:
            answers = [_with_fewer(one, self._nbest) for one in answers]
        return answers


def open_model(
    path: str | os.PathLike[str], nbest: int | None = None, task: str | None = None
) -> Answering:
    """Opens a run, a folder of a saved model, or an export.

    Args:
        path: The folder.
        nbest: Number of the best translations of a translator, or of the best words for each
            [MASK]; None for the model's own number.
        task: The signature of one of several tasks of an export; None for the first.
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


def _check_nbest(nbest: int | None, has_several: bool) -> None:
    if nbest is not None and not has_several:
        raise ValueError(
            "`--nbest` must be given for a translator or a model that fills [MASK] only. "
            f"Received: {nbest}"
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

        sizes = [sum(len(str(text)) for text in row) for row in zip(*columns, strict=True)]
        return [json_answer(row) for row in answers_of_rows(run, np.array(sizes), BATCH_ROWS)]

    return Answering(inputs, answer)


def read_batches(
    stream: BinaryIO, split: Callable[[str, int], Row], batch_size: int
) -> Iterator[list[Row]]:
    """Yields the lines of a UTF-8 stream as rows, in batches that are never empty.

    Lines end in `\\n` or `\\r\\n` only. An empty line is an empty text, so that there are as many
    answers as lines. A byte order mark at the start is skipped.

    Args:
        stream: The stream.
        split: Maps a line and its number (from 1) to a row.
        batch_size: Rows of a batch; the last one may have fewer.
    """
    batch: list[Row] = []
    for number, line in enumerate(stream, start=1):
        batch.append(split(_decoded(line, number), number))
        if len(batch) == batch_size:
            yield batch
            batch = []
    if batch:
        yield batch


def _decoded(line: bytes, number: int) -> str:
    content = line.removesuffix(b"\n").removesuffix(b"\r")
    try:
        return content.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"stdin, line {number}: the text must be UTF-8. Received: byte "
            f"{content[error.start]:#04x} at position {error.start}"
        ) from error

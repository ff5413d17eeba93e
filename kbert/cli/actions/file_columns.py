"""The columns of a file that a model reads, without importing TensorFlow, which takes seconds."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kbert.serving.batch_prediction.file_prediction import check_columns
from kbert.tasks.registry import task_named
from kbert.training.runs.run_directory import is_run, load_run


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
    config = load_run(model).config if is_run(model) else None
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

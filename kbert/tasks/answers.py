"""Outputs of a main signature as answers, whatever the task: JSON, an object, marks in the text.

The outputs decide which task they are of, so that the answers of a server and of exports that
others wrote are read too.
"""

from typing import Any

from rich.console import Console

from kbert.tasks.base.answers import plain_values
from kbert.tasks.base.task import Task
from kbert.tasks.registry import all_tasks


def json_answer(row: dict[str, Any]) -> dict[str, Any]:
    """Returns the outputs for one row as plain Python values, as JSON can hold them.

    Scores get the names of their classes; lists that are padded to the longest of a batch lose the
    padding and become lists of dicts.

    Args:
        row: Name of each output -> its NumPy value for the row.

    Returns:
        The form of its task, see `kbert/tasks/<task>/answers.py`; outputs that no task has as they
        are.
    """
    plain = plain_values(row)
    task = next((task for task in all_tasks() if task.has_outputs(plain)), None)
    found: dict[str, Any] = plain if task is None else task.answers.json_answer(plain)
    return found


def typed_answer(row: dict[str, Any]) -> Any:
    """Returns the outputs for one row as an object of the task's class.

    Args:
        row: Name of each output -> its NumPy value for the row.

    Returns:
        The object; a dict of plain values for outputs that no task has.
    """
    answer = json_answer(row)
    task = _task_of_answer(answer)
    return answer if task is None else task.answers.typed_answer(answer)


def show_answer(row: tuple[str, ...], answer: dict[str, Any], console: Console) -> None:
    """Prints a text with what a model found in it.

    Args:
        row: The texts that the model read, the marked one last.
        answer: From `json_answer`.
        console: Where to print.

    Raises:
        ValueError: The answer has no places in a text.
    """
    task = _task_of_answer(answer)
    show = None if task is None else getattr(task.answers, "show_answer", None)
    if show is None:
        raise ValueError("`--show` must be given for a model that marks places in a text.")
    show(row, answer, console)
    console.print()


def _task_of_answer(answer: dict[str, Any]) -> Task | None:
    return next((task for task in all_tasks() if task.is_answer(answer)), None)

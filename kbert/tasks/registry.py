"""The tasks of kbert, one line each. Their modules are imported on demand.

The outputs of a main signature decide which task they are of, so that the answers of a server and
of exports that others wrote are read too: as JSON, as an object, as marks in the text.
"""

import importlib
from functools import cache
from typing import Any

from kbert.tasks.answers import plain_values
from kbert.tasks.finetuned_task import FinetunedTask
from kbert.tasks.task import Task

# Names of tasks in the order of help texts; the object is TASK in `kbert/tasks/<name>/task.py`.
FINETUNED = (
    *("classification", "regression", "multi-label", "multiple-choice", "embedding"),
    *("question-answering", "span-tagging", "ner"),
)
OTHERS = ("translation", "captioning", "pretraining")


@cache
def all_tasks() -> tuple[Task, ...]:
    """Returns the object of every task."""
    modules = [f"kbert.tasks.{name.replace('-', '_')}.task" for name in (*FINETUNED, *OTHERS)]
    return tuple(importlib.import_module(module).TASK for module in modules)


def finetuned_tasks() -> tuple[FinetunedTask, ...]:
    """Returns the tasks for which `kbert train` fine-tunes an encoder."""
    return tuple(task for task in all_tasks() if isinstance(task, FinetunedTask))


def finetuned_task(name: str) -> FinetunedTask:
    """Returns the task of a name in a checked `RunConfig`."""
    return next(task for task in finetuned_tasks() if task.name == name)


def task_named(name: str) -> Task:
    """Returns the task of a name in a checked configuration."""
    return next(task for task in all_tasks() if task.name == name)


def task_of_class(name: str | None) -> Task | None:
    """Returns the task of models of a class, named in a saved folder or an export, or None."""
    return next((task for task in all_tasks() if task.model_name == name), None)


def task_of_checkpoint(checkpoint: Any) -> Task | None:
    """Returns the task of the model that a `Checkpoint` is of, by class or head; or None."""
    name = checkpoint.pipeline.get("class")
    if name:
        return task_of_class(name)
    head = checkpoint.head_class
    return next((task for task in all_tasks() if task.is_huggingface(head, checkpoint)), None)


def task_of(model: Any) -> Task | None:
    """Returns the task of a model, also of a derived class; None for a model of another kind."""
    found = (task_of_class(kind.__name__) for kind in type(model).__mro__)
    return next((task for task in found if task is not None), None)


def json_answer(row: dict[str, Any]) -> dict[str, Any]:
    """Returns the outputs for one row, NumPy values by name, as plain values that JSON can hold.

    Scores get the names of their classes; lists that are padded to the longest of a batch lose the
    padding and become lists of dicts. Outputs that no task has stay as they are.
    """
    plain = plain_values(row)
    task = next((task for task in all_tasks() if task.has_outputs(plain)), None)
    found: dict[str, Any] = plain if task is None else task.json_answer(plain)
    return found


def typed_answer(row: dict[str, Any]) -> Any:
    """Returns the outputs for one row as an object of the task's class, or as `json_answer`."""
    answer = json_answer(row)
    task = _task_of_answer(answer)
    return answer if task is None else task.typed_answer(answer)


def show_answer(row: tuple[str, ...], answer: dict[str, Any], console: Any) -> None:
    """Prints on a `rich` console the last of the texts of `row`, with what a model found there.

    Raises:
        ValueError: The answer has no places in a text.
    """
    task = _task_of_answer(answer)
    (task or Task()).show_answer(row, answer, console)
    console.print()


def _task_of_answer(answer: dict[str, Any]) -> Task | None:
    return next((task for task in all_tasks() if task.is_answer(answer)), None)

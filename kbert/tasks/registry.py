"""The tasks of kbert, one line each. Their modules are imported on demand."""

import importlib
from functools import cache
from typing import Any

from kbert.tasks.base.finetuned_task import FinetunedTask
from kbert.tasks.base.task import Task

# Names of tasks in the order of help texts; the object is TASK in `kbert/tasks/<name>/task.py`.
FINETUNED = (
    "classification",
    "regression",
    "multiple-choice",
    "question-answering",
    "span-tagging",
    "ner",
)
OTHERS = (
    "translation",
    "pretraining",
)


@cache
def all_tasks() -> tuple[Task, ...]:
    """Returns the object of every task."""
    modules = [f"kbert.tasks.{name.replace('-', '_')}.task" for name in (*FINETUNED, *OTHERS)]
    return tuple(importlib.import_module(module).TASK for module in modules)


def finetuned_tasks() -> tuple[FinetunedTask, ...]:
    """Returns the tasks for which `kbert train` fine-tunes an encoder."""
    return tuple(task for task in all_tasks() if isinstance(task, FinetunedTask))


def finetuned_task(name: str) -> FinetunedTask:
    """Returns the task of a name in a checked `RunConfig`.

    Args:
        name: The name.
    """
    return next(task for task in finetuned_tasks() if task.name == name)


def task_named(name: str) -> Task:
    """Returns the task of a name in a checked configuration.

    Args:
        name: The name.
    """
    return next(task for task in all_tasks() if task.name == name)


def task_of_class(name: str | None) -> Task | None:
    """Returns the task of models of a class, or None.

    Args:
        name: The name of the class, from a saved folder or an export.
    """
    return next((task for task in all_tasks() if task.model_name == name), None)


def task_of(model: Any) -> Task | None:
    """Returns the task of a model; None for a model of another kind.

    Args:
        model: A model of one of kbert's classes, or of a class that derives from one.
    """
    found = (task_of_class(kind.__name__) for kind in type(model).__mro__)
    return next((task for task in found if task is not None), None)

"""Loads a saved text model of any task."""

import os
from pathlib import Path
from typing import Any

import keras

from kbert.checkpoints.captioning_folder import is_captioning
from kbert.checkpoints.pretrained import find_name, resolve
from kbert.checkpoints.read_checkpoint import is_marian, is_translation, read_checkpoint
from kbert.pipelines.saved_pipeline import load_pipeline
from kbert.tasks.registry import all_tasks, task_named, task_of_checkpoint


def load(directory: str | os.PathLike[str], **kwargs: Any) -> Any:
    """Loads a model from `save_pretrained` or `save`, or from Hugging Face or Marian with a head.

    `keras.models.load_model` does the same for a `.keras` file once kbert is imported.

    Args:
        directory: the directory, that of a finished run, a file of the model's `save`, or a name:
            of a model that comes with kbert, or `org/name` of the Hugging Face hub.
        **kwargs: arguments of the class, such as `dtype`; with a file, of
            `keras.models.load_model`.

    Returns:
        A model of one of kbert's classes on raw texts.

    Raises:
        ValueError: it holds an encoder without a head, or an unknown task.
        FileNotFoundError: there is no such folder, file or name.
        OSError: the hub cannot be reached.
    """
    if Path(directory).suffix == ".keras":
        if not Path(directory).is_file():
            raise FileNotFoundError(
                f"`directory` must be there. Received: {os.fspath(directory)!r}, no such file"
            )
        return keras.models.load_model(directory, **kwargs)
    find_name(directory, "directory")  # an error says the argument of this function
    folder = resolve(directory)
    if is_translation(folder) or is_marian(folder):
        return task_named("translation").model_class().from_pretrained(folder, **kwargs)
    if is_captioning(folder):
        return task_named("captioning").model_class().from_pretrained(folder, **kwargs)
    checkpoint = read_checkpoint(folder)
    task = task_of_checkpoint(checkpoint)
    if task is None:
        name = checkpoint.pipeline.get("class")
        known = [task.model_name for task in all_tasks()]
        raise ValueError(
            f"`directory` must hold one of {known}. Received: {directory}, "
            f"{'an encoder without a task' if name is None else name}"
        )
    return load_pipeline(task.model_class(), directory, checkpoint=checkpoint, **kwargs)

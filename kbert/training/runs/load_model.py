"""Loads the model of a run, or of a model's folder."""

import os
from typing import Any

from kbert.tasks.load import load
from kbert.training.runs.run_directory import model_of


def load_model(directory: str | os.PathLike[str]) -> Any:
    """Loads the model of a run, or of a folder that `save_pretrained` wrote.

    Args:
        directory: A run directory or a model's.

    Raises:
        FileNotFoundError: There is no such folder, or the run is not finished.
        ValueError: It is neither a run nor a model.
    """
    return load(model_of(directory))

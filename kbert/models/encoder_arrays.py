"""The weights of an encoder as arrays named by their paths."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np


def weight_name(model: Any, variable: Any) -> str:
    """The path of a variable inside its model: `pooler/kernel`, not `bert/pooler/kernel`."""
    return str(variable.path).removeprefix(f"{model.name}/")


def encoder_arrays(model: Any) -> dict[str, np.ndarray]:
    """All weights of a model.

    Args:
        model: a Keras model.

    Returns:
        Name -> array, in the type of the variable.
    """
    return {weight_name(model, v): np.asarray(v) for v in model.weights if not _is_state(v)}


def assign_arrays(
    model: Any,
    arrays: Mapping[str, np.ndarray],
    may_be_absent: Callable[[str], bool] = lambda name: name.startswith("pooler/"),
) -> None:
    """Gives a model the weights of a checkpoint.

    Args:
        model: a built Keras model.
        arrays: name -> array; cast to the type of the variable.
        may_be_absent: tells the names of weights that may be missing and keep their random start.

    Raises:
        ValueError: weights are missing, left over or of another shape; the message lists them.
    """
    variables = {weight_name(model, v): v for v in model.weights if not _is_state(v)}
    missing = [n for n in variables if n not in arrays and not may_be_absent(n)]
    left_over = [n for n in arrays if n not in variables]
    misshapen = [
        f"{n} (expected {tuple(variables[n].shape)}, found {arrays[n].shape})"
        for n in arrays
        if n in variables and tuple(variables[n].shape) != arrays[n].shape
    ]
    if missing or left_over or misshapen:
        raise ValueError(
            "`arrays` must fit the model. "
            f"Missing: {missing or 'none'}; left over: {left_over or 'none'}; "
            f"wrong shapes: {misshapen or 'none'}"
        )
    for name, array in arrays.items():
        variables[name].assign(np.asarray(array).astype(variables[name].dtype, copy=False))


def _is_state(variable: Any) -> bool:
    return "seed_generator" in variable.path

"""The weights of a model as arrays named by their paths, which are trained, and new ones."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import keras
import numpy as np
from keras import ops

# At the beginning of the names of weights of adapters, and of a pooler's.
ADAPTER = "adapters/"
POOLER = "pooler/"


def trainable_but(hold: Callable[[Any, bool], None], doc: str) -> property:
    """Returns a property `trainable` of a model of which some parts may stay frozen.

    Args:
        hold: called with the model and the value after each setting, which reaches all parts.
        doc: the property's docstring.
    """

    def getter(self: Any) -> bool:
        return bool(keras.Model.trainable.fget(self))

    def setter(self: Any, value: bool) -> None:
        keras.Model.trainable.fset(self, value)
        hold(self, value)

    getter.__doc__ = doc
    return property(getter, setter)


def weight_name(model: Any, variable: Any) -> str:
    """Returns a variable's path inside its model: `pooler/kernel`, not `bert/pooler/kernel`."""
    return str(variable.path).removeprefix(f"{model.name}/")


def encoder_arrays(model: Any) -> dict[str, np.ndarray]:
    """Returns all weights of a model by their names, as arrays in the dtype of the variables."""
    return {name: np.asarray(variable) for name, variable in named_weights(model).items()}


def named_weights(model: Any) -> dict[str, Any]:
    """Returns all weights of a model by their names, as variables.

    Several of one path, as parts of a network of Keras may have, are numbered in their order. The
    states of seed generators, which Keras counts among them, are left out.
    """
    found: dict[str, Any] = {}
    for variable in model.weights:
        if "seed_generator" in variable.path:
            continue
        name = path = weight_name(model, variable)
        number = 1
        while name in found:
            number += 1
            name = f"{path}:{number}"
        found[name] = variable
    return found


def misshapen(variables: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> list[str]:
    """Returns the names of weights that have another shape than their array, with both shapes.

    An array without a variable is ignored.
    """
    return [
        f"{name} (expected {tuple(variables[name].shape)}, found {array.shape})"
        for name, array in arrays.items()
        if name in variables and tuple(variables[name].shape) != array.shape
    ]


def assign_arrays(
    model: Any,
    arrays: Mapping[str, np.ndarray],
    may_be_absent: Callable[[str], bool] = lambda name: name.startswith(POOLER),
) -> None:
    """Assigns arrays, cast to the dtypes of its variables, to a built model.

    `may_be_absent` says whether the weight of a name may be missing and keep its initial value.

    Raises:
        ValueError: weights are missing, left over or of another shape; the message lists them.
    """
    variables = named_weights(model)
    missing = [n for n in variables if n not in arrays and not may_be_absent(n)]
    left_over = [n for n in arrays if n not in variables]
    wrong_shapes = misshapen(variables, arrays)
    if missing or left_over or wrong_shapes:
        raise ValueError(
            "`arrays` must fit the model. "
            f"Missing: {missing or 'none'}; left over: {left_over or 'none'}; "
            f"wrong shapes: {wrong_shapes or 'none'}"
        )
    for name, array in arrays.items():
        variables[name].assign(np.asarray(array).astype(variables[name].dtype, copy=False))


_FOLLOWED: ContextVar[bool] = ContextVar("followed", default=False)


@keras.saving.register_keras_serializable("kbert")
class NewWeights(keras.initializers.TruncatedNormal):
    """BERT's truncated normal, which draws nothing inside `weights_follow`.

    Drawing a hundred million numbers takes seconds, and a checkpoint's replace them.
    """

    def __call__(self, shape: Any, dtype: Any = None) -> Any:
        """Returns random numbers, or zeros inside `weights_follow`."""
        if _FOLLOWED.get():
            return ops.zeros(shape, dtype)
        return super().__call__(shape, dtype)


@contextmanager
def weights_follow(follow: bool) -> Iterator[None]:
    """Declares, if `follow`, that all weights of encoders made inside are assigned afterwards."""
    token = _FOLLOWED.set(follow)
    try:
        yield
    finally:
        _FOLLOWED.reset(token)

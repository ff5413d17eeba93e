"""Steps of Keras' loops, whose signature depends on its backend, and their rows on several devices.
"""

import functools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import keras
import numpy as np
from keras import tree

_Class = TypeVar("_Class", bound=type)


class WholeBatches(keras.distribution.DataParallel):
    """Devices of JAX that share each batch, however many rows it has; `rows_divided` divides them.

    Keras' own distribution hands out the rows before a step, equally many to each device, and fails
    at any other number: at most last batches, and at batches by a budget of tokens. Here each
    device gets the whole batch, a few integers a token, and the step says which rows are whose: XLA
    divides any number. A step computes what it would on one device, denominators, norms and
    dropout included, but for the rounding of sums.
    """

    def get_data_layout(self, data_shape: Any) -> Any:
        """Returns the layout of an input that every device has."""
        return keras.distribution.TensorLayout([None] * len(data_shape), self.device_mesh)


def rows_divided(model: Any, *args: Any) -> tuple[Any, ...]:
    """Returns the arguments of a step of `model`, the rows of its batch divided among the devices.

    Without a `keras.distribution`, and where steps are not compiled, they are returned as they are.
    The batch, arrays (B, ...), is the last of `args`.
    """
    found = keras.distribution.distribution()
    if found is None or model.run_eagerly or not model.jit_compile:
        return args

    def divided(x: Any) -> Any:
        if x is None:
            return None
        axes = [found.batch_dim_name] + [None] * (len(x.shape) - 1)
        layout = keras.distribution.TensorLayout(axes, found.device_mesh)
        return keras.distribution.distribute_tensor(x, layout)

    return (*args[:-1], tree.map_structure(divided, args[-1]))


def adapter_states(model: Any) -> list[Any]:
    """Returns what graphs of a model hold on to beside its weights: the adapters within it."""
    layers = model._flatten_layers()
    return [layer.adapter_state for layer in layers if hasattr(layer, "adapter_state")]


def drop_outdated_functions(model: Any) -> None:
    """Drops functions of Keras' loops that were traced for other adapters than are active now."""
    states = adapter_states(model)
    if vars(model).get("_traced_for", states) != states:
        model.train_function = model.test_function = model.predict_function = None
    vars(model)["_traced_for"] = states  # not as an attribute: Keras would track it


def retraced(model_class: _Class) -> _Class:
    """Has Keras' loops of a class of models run with the adapters that are active by then."""

    def checked(make: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(make)
        def checked_make(self: Any, force: bool = False) -> Any:
            drop_outdated_functions(self)
            return make(self, force)

        return checked_make

    for name in ("make_train_function", "make_test_function", "make_predict_function"):
        setattr(model_class, name, checked(getattr(model_class, name)))
    return model_class


def function_of_replicas(model: Any, name: str, force: bool) -> Any:
    """Returns a function of Keras' loops that `replication` of `model` makes; None without one.

    Functions that were traced for other adapters are dropped first.

    Args:
        model: has `replication`.
        name: "train_function", "test_function" or "predict_function".
        force: whether to make it again.
    """
    drop_outdated_functions(model)
    return model.replication and model.replication.function(name, force)


def whole_epochs(epochs: Any) -> int:
    """Returns `epochs` of Keras' `fit`, which would train nothing and say nothing for 0 or less.

    Raises:
        ValueError: it is no whole number of at least 1.
    """
    if isinstance(epochs, bool) or not isinstance(epochs, int | np.integer) or epochs < 1:
        raise ValueError(f"`epochs` must be a whole number, at least 1. Received: epochs={epochs}")
    return int(epochs)


@contextmanager
def quiet_end(dataset: Any, steps: Any = None) -> Iterator[None]:
    """Keeps Keras from warning of each end of a kbert dataset whose number of batches varies.

    Args:
        dataset: what Keras' `fit` gets; those of kbert have `epochs`.
        steps: the steps of an epoch that were asked for, without which the warning is none.
    """
    with warnings.catch_warnings():
        if hasattr(dataset, "epochs") and not steps:
            warnings.filterwarnings("ignore", "Your input ran out of data", UserWarning)
        yield


def outputs_of_step(model: Any, *args: Any) -> Any:
    """Returns what `predict_step` of a model must return on the running backend.

    Args:
        model: has `batch_outputs(x)`.
        *args: a batch, or on JAX the values of the model's variables and a batch.

    Returns:
        The outputs of the batch; on JAX also the values of the variables that do not train.
    """
    if len(args) == 1:
        return model.batch_outputs(keras.utils.unpack_x_y_sample_weight(args[0])[0])
    x = keras.utils.unpack_x_y_sample_weight(rows_divided(model, *args)[-1])[0]
    trained, others = args[0][:2]
    variables = (*model.trainable_variables, *model.non_trainable_variables)
    with keras.StatelessScope(state_mapping=list(zip(variables, (*trained, *others)))):
        return model.batch_outputs(x), others

"""Functions that write out their own gradient, where somebody wants one."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from keras import ops

_WANTED: ContextVar[bool] = ContextVar("gradients_are_wanted", default=True)


def own_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """`keras.ops.custom_gradient`, except within `without_gradients`.

    Args:
        function: from arrays to what it computes, and a function that gives the gradients.

    Returns:
        From the same arrays to what it computes.
    """
    with_gradient = ops.custom_gradient(function)

    @functools.wraps(function)
    def called(*args: Any) -> Any:
        return with_gradient(*args) if _WANTED.get() else function(*args)[0]

    return called


@contextmanager
def without_gradients() -> Iterator[None]:
    """Lets functions be traced without the gradients that they have written out.

    TensorFlow keeps such gradients with a graph that is saved, and in a table of the process that
    loads it, which holds the model for ever.
    """
    token = _WANTED.set(False)
    try:
        yield
    finally:
        _WANTED.reset(token)

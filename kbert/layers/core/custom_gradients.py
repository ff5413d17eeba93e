"""Functions with custom gradients, which can be switched off."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from keras import ops

_WANTED: ContextVar[bool] = ContextVar("gradients_are_wanted", default=True)


def own_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """Applies `keras.ops.custom_gradient`, except within `without_gradients`.

    Args:
        function: maps arrays to its result and a function that returns the gradients.

    Returns:
        A function from the same arrays to the result.
    """
    with_gradient = ops.custom_gradient(function)

    @functools.wraps(function)
    def called(*args: Any) -> Any:
        return with_gradient(*args) if _WANTED.get() else function(*args)[0]

    return called


@contextmanager
def without_gradients() -> Iterator[None]:
    """Lets functions be traced without their custom gradients.

    TensorFlow keeps such gradients with a saved graph, and in a global table of the process that
    loads it, which keeps the model alive for ever.
    """
    token = _WANTED.set(False)
    try:
        yield
    finally:
        _WANTED.reset(token)

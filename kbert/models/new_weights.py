"""The initializer of encoders, which draws nothing where a checkpoint's weights follow."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import keras
from keras import ops

_FOLLOWED: ContextVar[bool] = ContextVar("followed", default=False)


@keras.saving.register_keras_serializable("kbert")
class NewWeights(keras.initializers.TruncatedNormal):
    """BERT's truncated normal, which draws nothing inside `weights_follow`.

    Drawing a hundred million numbers takes seconds, and a checkpoint's replace them.
    """

    def __call__(self, shape: Any, dtype: Any = None) -> Any:
        """Returns random numbers, or zeros inside `weights_follow`.

        Args:
            shape: shape of the weight.
            dtype: dtype of the weight.
        """
        if _FOLLOWED.get():
            return ops.zeros(shape, dtype)
        return super().__call__(shape, dtype)


@contextmanager
def weights_follow(follow: bool) -> Iterator[None]:
    """Declares that all weights of encoders made inside are assigned afterwards.

    Args:
        follow: whether they are; if not, nothing changes.
    """
    token = _FOLLOWED.set(follow)
    try:
        yield
    finally:
        _FOLLOWED.reset(token)

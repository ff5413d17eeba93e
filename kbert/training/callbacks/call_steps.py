"""Steps of an epoch as Keras' callbacks hear of them, where several are one call."""

from collections.abc import Mapping
from typing import Any


def steps_done(batch: int, params: Mapping[str, Any] | None) -> int:
    """How many steps of this call of `fit` are done in the epoch that goes on.

    Keras counts whole calls of several steps, of which the last one may be short.

    Args:
        batch: What `on_train_batch_end` got.
        params: The callback's parameters.
    """
    return min(batch + 1, (params or {}).get("steps") or batch + 1)

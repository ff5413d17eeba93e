"""A loop over time whose results are kept for every step.

`keras.ops.scan` would do, but on TensorFlow it keeps for every step all that is carried, and
nothing else.
"""

from collections.abc import Callable
from typing import Any

from keras import ops

Step = Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[tuple[Any, ...], tuple[Any, ...]]]


def scan(
    step: Step,
    carry: tuple[Any, ...],
    inputs: tuple[Any, ...],
    widths: tuple[int | Any, ...],
    reverse: bool = False,
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Runs a step for each time, first to last or the other way; no backend differentiates it.

    Args:
        step: takes what is carried, and the inputs of one time, (B, ...) each. Returns what is
            carried on, of the same shapes and dtypes, and what is kept, (B, W) each.
        carry: what is carried into the first step.
        inputs: arrays (T, B, ...).
        widths: W of each array that is kept; all have the dtype of the first of `carry`.
        reverse: whether time goes from T - 1 down to 0.

    Returns:
        What the last step carries on, and what was kept, (T, B, W) each.
    """
    length, rows = ops.shape(inputs[0])[:2]
    dtype = carry[0].dtype
    kept = tuple(ops.zeros((length, rows, width), dtype) for width in widths)

    def body(count: Any, carry: Any, kept: Any) -> Any:
        time = length - 1 - count if reverse else count
        carry, results = step(carry, tuple(ops.take(array, time, axis=0) for array in inputs))
        place = ops.reshape(time, (1, 1))
        kept = tuple(ops.scatter_update(a, place, r[None]) for a, r in zip(kept, results))
        return count + 1, carry, kept

    start = (ops.zeros((), "int32"), tuple(carry), kept)
    _, carry, kept = ops.while_loop(lambda count, *_: count < length, body, start)
    return carry, kept

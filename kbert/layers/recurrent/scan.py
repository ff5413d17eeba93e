"""A loop over time whose results are kept for every step."""

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
    """Runs a step for each time, first to last or the other way.

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
    rows, count = ops.shape(inputs[0])[1], len(widths)
    # On TensorFlow, `ops.scan` can keep what is carried, and nothing else.
    places = tuple(ops.zeros((rows, width), carry[0].dtype) for width in widths)

    def advanced(carried: tuple[Any, ...], time: Any) -> Any:
        further, kept = step(carried[count:], tuple(ops.take(x, time, axis=0) for x in inputs))
        return (*kept, *further), (*kept, *further)

    # It scans times: of several arrays whose length a graph does not know it takes none.
    times = ops.arange(ops.shape(inputs[0])[0], dtype="int32")
    last, kept = ops.scan(advanced, (*places, *carry), times, reverse=reverse)
    return tuple(last[count:]), tuple(kept[:count])

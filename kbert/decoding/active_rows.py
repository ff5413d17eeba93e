"""Rows of a batch during decoding: gathered, written back, and removed when they are finished."""

from collections.abc import Callable
from functools import partial
from typing import Any

import keras
from keras import ops

# Rows leave when one in so many is finished: leaving copies the values of the others.
_SHARE_THAT_LEAVES = 8


def rows_leave() -> bool:
    """Returns whether finished rows can leave the batch: where shapes may change inside a loop."""
    return bool(keras.backend.backend() == "tensorflow")


def of_unknown_number(rows: Any) -> Any:
    """Returns the same indices, int (m,), with a shape that a graph does not know statically.

    What is gathered by them may then leave a loop row by row. TensorFlow infers beforehand what
    depends on constants alone, but not through a loop; and of two branches it knows only what
    they share.
    """
    (true,) = ops.while_loop(
        ops.logical_not, lambda x: (ops.logical_not(x),), (ops.convert_to_tensor(True),)
    )
    more = ops.concatenate([rows, ops.zeros((1,), rows.dtype)])
    return ops.cond(true, lambda: rows, lambda: more)


def longest_of(limits: Any, capacity: int | None) -> Any:
    """Returns the largest of the limits, int32 (B,), and at least 1; or `capacity` if given."""
    if capacity is not None:
        return capacity
    longest = ops.max(limits, initial=1)
    return longest if rows_leave() else int(longest)


def of_parents(column: Any, parents: Any) -> Any:
    """Gathers entries (b, m, ...) of each row of (b, k, ...): those of `parents`, int (b, m)."""
    if rows_leave():
        return _tensorflow().gather(column, parents, axis=1, batch_dims=1)
    rows, k, rest = ops.shape(column)[0], column.shape[1], tuple(ops.shape(column)[2:])
    index = ops.cast(parents, "int32") + ops.arange(rows, dtype="int32")[:, None] * k
    taken = ops.take(ops.reshape(column, (-1, *rest)), ops.reshape(index, (-1,)), axis=0)
    return ops.reshape(taken, (-1, parents.shape[1], *rest))


def _tensorflow() -> Any:
    # One node of its graph gathers within rows; of `keras.ops` it is twenty, at every step. And
    # six to gather rows, for indices that may be negative.
    import tensorflow

    return tensorflow


def taken_rows(values: Any, rows: Any) -> Any:
    """Gathers the rows, int (m,), of every tensor (b, ...) of a structure."""
    gather = _tensorflow().gather if rows_leave() else partial(ops.take, axis=0)
    return keras.tree.map_structure(lambda x: gather(x, rows), values)


def written_rows(answers: dict[str, Any], values: dict[str, Any], rows: Any) -> dict[str, Any]:
    """Scatters the answers of rows, int32 (m,), into those of all, for each key of `answers`."""
    index = ops.cast(rows, "int32")[:, None]
    return {key: ops.scatter_update(a, index, values[key]) for key, a in answers.items()}


def enough_finished(done: Any) -> Any:
    """Returns whether so many rows are finished, bool (b,), that it pays to remove them."""
    gone = ops.sum(ops.cast(done, "int32"))
    return gone >= ops.maximum(1, ops.shape(done)[0] // _SHARE_THAT_LEAVES)


def without_finished(
    values: dict[str, Any], answers: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Removes finished rows and writes their answers.

    `values` are tensors (b, ...), among them `done` bool (b,) and `row` int32 (b,), and `answers`
    tensors (B, ...), whose keys `values` has too.
    """
    done = values["done"]
    leaving, staying = ops.where(done)[0], ops.where(ops.logical_not(done))[0]
    gone = taken_rows(values, leaving)
    written = written_rows(answers, gone, gone["row"])
    return taken_rows(values, staying), written


def decoded(
    advance: Callable[[dict[str, Any], Any], dict[str, Any]],
    values: dict[str, Any],
    answers: dict[str, Any],
    limits: Any,
    longest: Any,
) -> dict[str, Any]:
    """Advances rows step by step until all are done, and returns their answers.

    `advance` takes the loop's variables and the step, an int32 scalar, and returns the variables.
    These are `values`, tensors (B, ...), among them `done` bool (B,), and those whose keys are in
    `answers`. `limits`, int32 (B,), are the maximum lengths of the rows, and `longest` of all.
    """
    values = {**values, "row": ops.arange(ops.shape(values["done"])[0], dtype="int32")}
    if rows_leave():
        values = taken_rows(values, of_unknown_number(ops.where(limits > 0)[0]))
    values = advance(values, ops.zeros((), "int32"))

    def unfinished(time: Any, values: Any, answers: Any = None) -> Any:
        return ops.logical_and(time < longest, ops.any(ops.logical_not(values["done"])))

    def few_finished(time: Any, values: Any) -> Any:
        return ops.logical_and(time < longest, ops.logical_not(enough_finished(values["done"])))

    def once_more(time: Any, values: Any) -> Any:
        return time + 1, advance(values, time)

    # A loop within a loop: if each step asked whether rows leave, every variable would pass a
    # branch at each step, by two nodes of the graph.
    def until_some_leave(time: Any, values: Any, answers: Any) -> Any:
        time, values = ops.while_loop(few_finished, once_more, (time, values))
        return time, *without_finished(values, answers)

    first = ops.ones((), "int32"), values
    if not rows_leave():
        _, values = ops.while_loop(unfinished, once_more, first)
        return {key: values[key] for key in answers}
    _, values, answers = ops.while_loop(unfinished, until_some_leave, (*first, answers))
    return written_rows(answers, values, values["row"])

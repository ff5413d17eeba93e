"""Checks of a request within the graph of an export, before anything is computed or joined.

A server checks neither ranks nor rows nor ranges: what does not fit would be answered with numbers
that mean nothing, or would fail all requests of its batch. A request that fails a check is refused
with INVALID_ARGUMENT, which names the input, what was expected and what came.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from kbert.serving.format.batching_file import LENGTHS

_TOKENS, _SEGMENTS = "token_ids", "segment_ids"
# Whether it holds, and the message of the error if not.
_Check = tuple[Any, Callable[[], Any]]


@dataclass(frozen=True)
class InputLimits:
    """Sizes of a model that bound its inputs; 0 for one that is unknown or does not bound any.

    Token ids are below `vocabulary_size`, segment ids below `num_segments`, and a row has at most
    `max_sequence_length` tokens.
    """

    vocabulary_size: int = 0
    num_segments: int = 0
    max_sequence_length: int = 0

    @classmethod
    def of(cls, model: Any) -> "InputLimits":
        """Returns the limits of a model with an `encoder`, and none for another one."""
        encoder = getattr(model, "encoder", None)
        found = [int(getattr(encoder, name, 0) or 0) for name in cls.__dataclass_fields__]
        # With a single segment, as in RoBERTa, the ids are not read.
        return cls(found[0], found[1] if found[1] > 1 else 0, found[2])


def checked(
    inputs: Sequence[tf.Tensor], specs: Sequence[tf.TensorSpec], limits: InputLimits
) -> list[tf.Tensor]:
    """Returns the inputs of a request, to be read only after they have been checked; graph code.

    Ranks, rows and fixed dimensions must be those of `specs`, and no dimension besides the rows
    may be 0 where there are rows. Of token ids the numbers must be within `limits`, and the lengths
    in [1, T].
    """
    # A graph believes the shapes of its inputs, and would leave out the checks of what is fed.
    fed = {
        spec.name: tf.raw_ops.PlaceholderWithDefault(input=one, shape=tf.TensorShape(None))
        for spec, one in zip(specs, inputs, strict=True)
    }
    shapes = {name: tf.shape(one) for name, one in fed.items()}
    checks = [*_shape_checks(specs, shapes)]
    if {_TOKENS, LENGTHS} <= set(fed) and limits.max_sequence_length:
        checks += _token_checks(fed, shapes, limits)
    fits = checks[0][0] if len(checks) == 1 else tf.reduce_all(tf.stack([c for c, _ in checks]))

    def refuse() -> tf.Tensor:
        done: list[Any] = []
        for holds, message in checks:
            with tf.control_dependencies(done):
                done = [tf.raw_ops.Assert(condition=holds, data=[message()], summarize=1)]
        with tf.control_dependencies(done):
            return tf.identity(fits)

    with tf.control_dependencies([tf.cond(fits, lambda: fits, refuse)]):
        return [tf.ensure_shape(fed[spec.name], spec.shape) for spec in specs]


def _shape_checks(specs: Sequence[tf.TensorSpec], shapes: dict[str, tf.Tensor]) -> list[_Check]:
    """Returns checks that can be computed of inputs of any rank."""
    found: list[_Check] = []
    first = specs[0].name
    for spec in specs:
        shape = shapes[spec.name]
        holds = tf.equal(tf.size(shape), spec.shape.rank)
        if further := spec.shape[1:].as_list():
            # As many as wanted, also where the rank is another one.
            dims = tf.concat([shape, [0] * len(further)], 0)[1 : len(further) + 1]
            is_free = tf.constant([size is None for size in further])
            wanted = tf.constant([1 if size is None else size for size in further])
            fits = tf.equal(dims, wanted) | (is_free & (dims > wanted))
            holds &= tf.reduce_all(fits, 0) | tf.equal(_at(shape, 0), 0)
        listed = ", ".join(["rows", *(str(size or "any") for size in further)])
        words = f"`{spec.name}` must have the shape [{listed}]. Received: shape={{}}"
        found.append((holds, _words(words, shape)))
    for spec in specs[1:]:
        one, other = shapes[first], shapes[spec.name]
        words = f"`{spec.name}` must have as many rows as `{first}`. Received: {{}} and {{}}"
        rows = [_at(other, 0), _at(one, 0)]
        found.append((tf.equal(*rows), _words(words, *rows)))
    return found


def _token_checks(
    fed: dict[str, tf.Tensor], shapes: dict[str, tf.Tensor], limits: InputLimits
) -> list[_Check]:
    most, width = limits.max_sequence_length, _at(shapes[_TOKENS], -1)
    words = f"`{_TOKENS}` must have at most {most} tokens a row. Received: {{}}"
    found: list[_Check] = [(width <= most, _words(words, width))]
    if _SEGMENTS in fed:
        words = f"`{_SEGMENTS}` must have as many tokens as `{_TOKENS}`. Received: {{}} and {{}}"
        own = _at(shapes[_SEGMENTS], -1)
        found.append((tf.equal(own, width), _words(words, own, width)))
    for name, end in ((_TOKENS, limits.vocabulary_size), (_SEGMENTS, limits.num_segments)):
        if end and name in fed:
            found.append(_range_check(name, fed[name], 0, end - 1, f"[0, {end})"))
    return [*found, _range_check(LENGTHS, fed[LENGTHS], 1, width, "[1, {}]", width)]


def _range_check(
    name: str, numbers: tf.Tensor, least: int, most: Any, told: str, *told_of: Any
) -> _Check:
    """Checks that numbers, of any rank, are in [least, most]; without numbers they are."""
    flat = tf.reshape(numbers, [-1])
    low, high = tf.reduce_min(flat, 0), tf.reduce_max(flat, 0)
    words = f"`{name}` must be in {told}. Received: {{}}"

    def message() -> tf.Tensor:
        return tf.strings.format(words, [*told_of, tf.where(low < least, low, high)])

    return (low >= least) & (high <= most) | tf.equal(tf.size(flat), 0), message


def _at(shape: tf.Tensor, place: int) -> tf.Tensor:
    """Returns a dimension, first (0) or last (-1); 0 of a scalar, which has none."""
    return tf.concat([shape, [0]] if place == 0 else [[0], shape], 0)[place]


def _words(words: str, *values: Any) -> Callable[[], Any]:
    return lambda: tf.strings.format(words, list(values))

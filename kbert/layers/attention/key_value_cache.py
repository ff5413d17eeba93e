"""Keys and values of what a decoder has computed so far, by time and slot.

At each time a row has k hypotheses, and each stands in a slot of its own. An entry stays where it
was put; a hypothesis finds its past by a mask over all slots (`path_mask`), so nothing is copied
when hypotheses change places. Beams fold into the time axis of the queries.

Shapes: B rows, N heads, H head size, K slots a time, M = K times the times that are held.
"""

from typing import Any, NamedTuple

import keras
from keras import ops


class KeyValueCache(NamedTuple):
    """The cache of one layer.

    Attributes:
        key: (B, N, M, H).
        value: (B, N, M, H).
        slots: an array of shape (B, K) whatever its values are; it tells K.
        fixed: an array (B, 1) if M is fixed, for backends whose shapes cannot change, or (B, 0) if
            entries are joined on.
    """

    key: Any
    value: Any
    slots: Any
    fixed: Any


def empty_cache(like: Any, slots: int, capacity: int | None) -> KeyValueCache:
    """A cache without entries.

    Args:
        like: (B, N, S, H), for its rows, heads and type.
        slots: K.
        capacity: the most times, fixed from now on; or None, to grow with every time.
    """
    rows, num_heads, head_dim = ops.shape(like)[0], like.shape[1], like.shape[3]
    length = _no_entries(like) if capacity is None else slots * capacity
    zeros = ops.zeros((rows, num_heads, length, head_dim), like.dtype)
    kind = ops.zeros((rows, 0 if capacity is None else 1), "int32")
    return KeyValueCache(zeros, zeros, ops.zeros((rows, slots), "int32"), kind)


def _no_entries(like: Any) -> Any:
    """0, as a length that may grow in a loop.

    A graph of TensorFlow would take a number, or the size of something whose shape it can find
    out, for the length of all caches of the loop. It cannot know how many numbers are above and
    below 0.
    """
    if keras.backend.backend() != "tensorflow":
        return 0
    some = ops.reshape(like[:1, :1, :1, :1], (-1,))
    return ops.shape(ops.where(ops.logical_and(some > 0, some < 0))[0])[0]


def appended(cache: KeyValueCache, key: Any, value: Any, time: Any) -> KeyValueCache:
    """The cache with the entries of one time.

    Args:
        cache: of the times before.
        key: (B, N, k, H), k at most K; slots behind k are filled with zeros.
        value: (B, N, k, H).
        time: int scalar.
    """
    slots, used = cache.slots.shape[1], key.shape[2]
    padding = ((0, 0), (0, 0), (0, slots - used), (0, 0))
    if used < slots:
        key, value = ops.pad(key, padding), ops.pad(value, padding)
    if cache.fixed.shape[1]:
        start = (0, 0, time * slots, 0)
        key = ops.slice_update(cache.key, start, key)
        value = ops.slice_update(cache.value, start, value)
    else:
        key = ops.concatenate([cache.key, key], axis=2)
        value = ops.concatenate([cache.value, value], axis=2)
    return cache._replace(key=key, value=value)


def path_mask(slots: Any, time: Any, cache: KeyValueCache) -> Any:
    """What each hypothesis may see of a cache that has the entries of `time` too.

    Args:
        slots: int32 (B, k, L), the slot of each hypothesis at each time up to `time`.
        time: int scalar.
        cache: of the times before `time`.

    Returns:
        bool (B, 1, k, M).
    """
    width = cache.slots.shape[1]
    past = ops.arange(ops.shape(slots)[2], dtype="int32") <= time  # (L,)
    if not cache.fixed.shape[1]:
        slots, past = slots[:, :, : time + 1], past[: time + 1]
    own = ops.equal(slots[..., None], ops.arange(width, dtype="int32"))  # (B, k, L, K)
    seen = ops.logical_and(own, past[:, None])
    rows, hypotheses = ops.shape(slots)[0], slots.shape[1]
    return ops.reshape(seen, (rows, 1, hypotheses, ops.shape(slots)[2] * width))

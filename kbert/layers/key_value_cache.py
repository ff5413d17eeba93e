"""Key-value cache of a decoder, by step and slot.

At each step a row has k hypotheses, each in a slot of its own. An entry stays where it was
written; a hypothesis finds its past by a mask over all slots (`path_mask`), so nothing is copied
when hypotheses are reordered. Beams fold into the time axis of the queries.

Shapes: B rows, N heads, H head size, K slots a step, M = K times the steps that are held.
"""

from typing import Any, NamedTuple

import keras
from keras import ops


class KeyValueCache(NamedTuple):
    """The cache of one layer."""

    key: Any  # (B, N, M, H)
    value: Any  # (B, N, M, H)


class Room(NamedTuple):
    """The form of the caches of all layers, in the shapes of arrays whose values are not used.

    Numbers would become variables of a loop.
    """

    slots: Any  # (B, K)
    # (B, 1) if M is fixed, for backends whose shapes cannot change, or (B, 0) if entries are
    # appended.
    fixed: Any


def cache_room(rows: Any, slots: int, capacity: int | None) -> Room:
    """Makes the form of caches of B rows and K slots.

    `capacity` is the most steps, for a fixed length; or None, to grow with every step.
    """
    fixed = ops.zeros((rows, 0 if capacity is None else 1), "int32")
    return Room(ops.zeros((rows, slots), "int32"), fixed)


def empty_cache(like: Any, slots: int, capacity: int | None) -> KeyValueCache:
    """Makes a cache without entries, with the rows, heads, head size and dtype of (B, N, S, H).

    `slots` and `capacity` are those of its room.
    """
    rows, num_heads, head_dim = ops.shape(like)[0], like.shape[1], like.shape[3]
    length = _no_entries(like) if capacity is None else slots * capacity
    zeros = ops.zeros((rows, num_heads, length, head_dim), like.dtype)
    return KeyValueCache(zeros, zeros)


def _no_entries(like: Any) -> Any:
    """Returns 0, as a length that may grow in a loop.

    A TensorFlow graph would take a number, or the size of anything whose shape it can infer, as
    the length of all caches of the loop. It cannot infer how many numbers are above and below 0.
    """
    if keras.backend.backend() != "tensorflow":
        return 0
    some = ops.reshape(like[:1, :1, :1, :1], (-1,))
    return ops.shape(ops.where(ops.logical_and(some > 0, some < 0))[0])[0]


def appended(cache: KeyValueCache, key: Any, value: Any, time: Any, room: Room) -> KeyValueCache:
    """Returns the cache with the entries (B, N, k, H) of one more step, of number `time`.

    With k less than K, the other slots are filled with zeros.
    """
    slots, used = room.slots.shape[1], key.shape[2]
    padding = ((0, 0), (0, 0), (0, slots - used), (0, 0))
    if used < slots:
        key, value = ops.pad(key, padding), ops.pad(value, padding)
    if room.fixed.shape[1]:
        start = (0, 0, time * slots, 0)
        key = ops.slice_update(cache.key, start, key)
        value = ops.slice_update(cache.value, start, value)
    else:
        key = ops.concatenate([cache.key, key], axis=2)
        value = ops.concatenate([cache.value, value], axis=2)
    return KeyValueCache(key, value)


def path_mask(slots: Any, time: Any, room: Room) -> Any:
    """Returns which entries of a cache that includes step `time` each hypothesis may see.

    `slots` int32 (B, k, L) is the slot of each hypothesis at each step up to `time`. The result is
    bool (B, 1, k, M).
    """
    width, hypotheses = room.slots.shape[1], slots.shape[1]
    places = ops.arange(width, dtype="int32")
    if not room.fixed.shape[1]:
        length = time + 1
        seen = ops.equal(slots[:, :, :length, None], places)  # (B, k, t, K)
        return ops.reshape(seen, (-1, 1, hypotheses, length * width))
    length = ops.shape(slots)[2]
    past = ops.arange(length, dtype="int32") <= time  # (L,)
    seen = ops.logical_and(ops.equal(slots[..., None], places), past[:, None])
    return ops.reshape(seen, (-1, 1, hypotheses, length * width))

import numpy as np
import pytest
import tensorflow as tf

from kbert.layers.key_value_cache import appended, cache_room, empty_cache, path_mask

DRAW = np.random.default_rng(2)
LIKE = DRAW.normal(size=(2, 3, 4, 5)).astype("float32")  # (B, N, S, H)


@pytest.mark.parametrize("capacity", [None, 4])
def test_entries_stand_at_their_time_and_slot(capacity):
    cache, room = empty_cache(LIKE, 2, capacity), cache_room(2, 2, capacity)
    first = DRAW.normal(size=(2, 3, 1, 5)).astype("float32")
    later = DRAW.normal(size=(2, 3, 2, 5)).astype("float32")
    cache = appended(cache, first, -first, 0, room)
    cache = appended(cache, later, -later, 1, room)
    key = np.asarray(cache.key)
    assert key.shape == (2, 3, 4 if capacity is None else 8, 5)
    np.testing.assert_array_equal(key[:, :, :1], first)
    np.testing.assert_array_equal(key[:, :, 2:4], later)
    np.testing.assert_array_equal(cache.value[:, :, 2:4], -later)
    assert not key[:, :, 1].any() and not key[:, :, 4:].any()


@pytest.mark.parametrize("capacity, entries", [(None, 6), (4, 8)])
def test_the_mask_shows_each_hypothesis_its_own_path(capacity, entries):
    slots = np.array([[[0, 1, 0, 0], [0, 1, 1, 0]], [[0, 0, 0, 0], [0, 1, 1, 0]]], "int32")
    mask = np.asarray(path_mask(slots, 2, cache_room(2, 2, capacity)))
    assert mask.shape == (2, 1, 2, entries)
    # By hand: entry of time t and slot j is number 2 t + j.
    seen = [[np.flatnonzero(mask[b, 0, k]).tolist() for k in range(2)] for b in range(2)]
    assert seen == [[[0, 3, 4], [0, 3, 5]], [[0, 2, 4], [0, 3, 5]]]


def test_it_grows_in_a_loop_though_all_shapes_are_known():
    @tf.function(autograph=False)
    def grown(like):
        entry, room = like[:, :, :1], cache_room(2, 1, None)

        def step(time, cache):
            return time + 1, appended(cache, entry + tf.cast(time, tf.float32), entry, time, room)

        def unfinished(time, cache):
            return time < 3

        return tf.while_loop(unfinished, step, (tf.constant(0), empty_cache(like, 1, None)))[1]

    key = grown(tf.constant(LIKE)).key.numpy()
    np.testing.assert_allclose(key, LIKE[:, :, :1] + np.arange(3.0)[:, None], rtol=1e-6)

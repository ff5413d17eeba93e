"""States in slots; the models that share the base are checked with its subclasses."""

import numpy as np
import pytest
import tensorflow as tf

from kbert.models.encoder_decoders.sequence_model import (
    SequenceModel,
    in_slots,
    of_slots,
    repeated,
)


def test_states_follow_their_parents():
    state = np.arange(12.0).reshape(2, 3, 2)  # (B, K, W)
    slots = np.zeros((2, 3, 2), "int32")
    slots[0, :, 1] = [2, 2, 0]
    found = of_slots(tf.constant(state), tf.constant(slots), tf.constant(2))
    np.testing.assert_array_equal(found[0], state[0, [2, 2, 0]])
    np.testing.assert_array_equal(found[1], state[1, [0, 0, 0]])
    first = of_slots(tf.constant(state), tf.ones((2, 1, 1), tf.int32), tf.constant(0))
    np.testing.assert_array_equal(first, state[:, :1])


def test_room_for_all_slots():
    one = tf.ones((2, 1, 3))
    wide = in_slots(one, tf.zeros((2, 4, 3)))
    np.testing.assert_array_equal(wide[:, 0], np.ones((2, 3)))
    np.testing.assert_array_equal(wide[:, 1:], np.zeros((2, 3, 3)))
    np.testing.assert_array_equal(repeated(tf.range(2), 3), [[0, 0, 0], [1, 1, 1]])


def test_a_subclass_must_have_its_own():
    class Nothing(SequenceModel):
        def __init__(self) -> None:
            super().__init__()
            self._keep(
                vocabulary_size=5, source_vocabulary_size=None, hidden_dim=4, embedding_dim=None,
                max_sequence_length=6, dropout=0.0, tied="all",
            )

    with pytest.raises(NotImplementedError, match="Nothing must make its layers"):
        Nothing()

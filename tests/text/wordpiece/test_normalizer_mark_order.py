import unicodedata

import numpy as np
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from kbert.text.wordpiece.normalizer import in_canonical_order

# Marks without decomposition, of the classes 9, 216, 220, 224, 226 and 230, and two letters.
LETTERS = "ab\u1b44\U0001d165\u0323\u302e\U0001d16d\u0307\u0308"


@given(st.lists(st.text(LETTERS, max_size=12), max_size=4))
def test_order_is_that_of_nfd(rows: list[str]) -> None:
    """`unicodedata.normalize` is the independent reference; each row is sorted alone."""
    text = "".join(rows)
    ordered = in_canonical_order(
        tf.constant([ord(letter) for letter in text], tf.int32),
        tf.constant(np.cumsum([0, *map(len, rows)]), tf.int64),
        tf.constant([unicodedata.combining(letter) for letter in text], tf.int32),
    )
    expected = "".join(unicodedata.normalize("NFD", row) for row in rows)
    assert "".join(map(chr, ordered.numpy())) == expected


def test_runs_end_with_their_row() -> None:
    ordered = in_canonical_order(
        tf.constant([1, 2]), tf.constant([0, 1, 2], tf.int64), tf.constant([230, 9])
    )
    assert ordered.numpy().tolist() == [1, 2]

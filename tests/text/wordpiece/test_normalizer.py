import numpy as np
import tensorflow as tf

from kbert.text.vocabulary import Vocabulary
from kbert.text.wordpiece.code_point_table import UNKNOWN_LETTER, build_table
from kbert.text.wordpiece.normalization import NormalizationRules
from kbert.text.wordpiece.normalizer import Normalizer

VOCABULARY = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdeé中", "##ß"])
NORMALIZER = Normalizer(build_table(VOCABULARY, NormalizationRules(True, True, True), False))
UNKNOWN = chr(UNKNOWN_LETTER)


def points_of(rows: list[str]) -> tuple[tf.Tensor, tf.Tensor]:
    points = tf.constant([ord(letter) for row in rows for letter in row], tf.int32)
    return points, tf.constant(np.cumsum([0, *map(len, rows)]), tf.int64)


def test_rows_by_hand() -> None:
    rows = ["ÀB\u0301", "", "a中x", "\0"]
    expected = ["ab", "", f"a 中 {UNKNOWN}", ""]
    normalized = NORMALIZER.normalize(*points_of(rows))
    assert [row.decode() for row in normalized.strings.numpy()] == expected
    assert normalized.row_splits.numpy().tolist() == [0, 2, 2, 7, 7]
    assert normalized.position.numpy().tolist() == list(range(7))
    # Sources: A-grave, B, the accent (nothing), a, the ideograph (three), x, NUL (nothing).
    assert normalized.source_splits.numpy().tolist() == [0, 1, 2, 2, 3, 6, 7, 7]


def test_rare_rows_are_shortened_and_ordered() -> None:
    """A word of 101 becomes two unknown letters; NFD puts class 9 (U+1B44) before 224 (U+302E)."""
    strings = NORMALIZER.normalize(*points_of(["a " + "b" * 101, "a\u302e\u1b44"])).strings
    long, marks = (row.decode() for row in strings.numpy())
    assert long == f"a {UNKNOWN}{UNKNOWN}"
    assert [ord(mark) - UNKNOWN_LETTER for mark in marks[1:]] == [9, 224]


def test_no_rows() -> None:
    assert NORMALIZER.normalize(*points_of([])).strings.shape == (0,)

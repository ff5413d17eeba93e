import numpy as np
import tensorflow as tf

from kbert.text.wordpiece.normalizer import MAX_CHARACTERS_PER_WORD, shortened


def run(rows: list[str]) -> tuple[list[str], list[int]]:
    values = tf.constant([ord(letter) for row in rows for letter in row], tf.int32)
    splits = tf.constant(np.cumsum([0, *map(len, rows)]), tf.int64)
    left, splits, position = shortened(values, splits, tf.range(tf.size(values)), ord("?"))
    text = "".join(map(chr, left.numpy()))
    bounds = splits.numpy()
    return [text[a:b] for a, b in zip(bounds[:-1], bounds[1:])], position.numpy().tolist()


def test_limit_is_the_reference_s() -> None:
    """`max_input_chars_per_word` of google-research/bert."""
    assert MAX_CHARACTERS_PER_WORD == 100


def test_words_up_to_the_limit_stay() -> None:
    rows = ["a" * 100, "", " b  cd ", "e" * 100 + " f"]
    text, position = run(rows)
    assert text == rows
    assert position == list(range(209))


def test_longer_words_keep_their_ends() -> None:
    rows = ["x " + "a" * 101 + " y", "b" * 300, "", "c" * 100, " " + "d" * 102]
    text, position = run(rows)
    assert text == ["x ?? y", "??", "", "c" * 100, " ??"]
    assert position[2:4] == [2, 102]  # the first and the last of the 101
    assert position[6:8] == [105, 404]


def test_words_do_not_run_across_rows() -> None:
    rows = ["a" * 60, "a" * 60, "", "a" * 60]
    assert run(rows)[0] == rows

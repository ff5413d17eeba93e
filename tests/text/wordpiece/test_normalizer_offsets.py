import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from kbert.text.tokenizer import TokenOffsets
from kbert.text.vocabulary import Vocabulary
from kbert.text.wordpiece.normalizer import decode
from kbert.text.wordpiece.wordpiece import WordPiece

TOKENIZER = WordPiece(Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "na", "##ive", "中", "!"]))


def rows_of(offsets: TokenOffsets) -> list[list[tuple[int, ...]]]:
    return [
        list(zip(*(part[row].numpy().tolist() for part in offsets), strict=True))
        for row in range(offsets.token_ids.nrows())
    ]


def test_offsets_by_hand() -> None:
    """id, bytes, code points: ï is two bytes; an accent of its own is no part of the token."""
    text = [" naïve!", "中na", "", "NAI\u0308VE"]
    assert rows_of(TOKENIZER.tokenize_with_offsets(tf.constant(text))) == [
        [(4, 1, 3, 1, 3), (5, 3, 7, 3, 6), (7, 7, 8, 6, 7)],
        [(6, 0, 3, 0, 1), (4, 3, 5, 1, 3)],
        [],
        [(4, 0, 2, 0, 2), (5, 2, 7, 2, 6)],
    ]


def test_simple_rows_and_others_in_one_batch() -> None:
    text = ["na !", "na\u3000!", "na !"]
    assert rows_of(TOKENIZER.tokenize_with_offsets(tf.constant(text))) == [
        [(4, 0, 2, 0, 2), (7, 3, 4, 3, 4)],
        [(4, 0, 2, 0, 2), (7, 5, 6, 3, 4)],
        [(4, 0, 2, 0, 2), (7, 3, 4, 3, 4)],
    ]


def test_long_words_are_cut_whole() -> None:
    text = ["é" * 101 + " na", "x" * 101]
    assert rows_of(TOKENIZER.tokenize_with_offsets(tf.constant(text))) == [
        [(1, 0, 202, 0, 101), (4, 203, 205, 102, 104)],
        [(1, 0, 101, 0, 101)],
    ]


def test_broken_bytes_count_as_python_counts() -> None:
    """b"\\xe4\\xb8" is one U+FFFD for Python, b"\\xff\\xff" two; both vanish from the tokens."""
    text = tf.constant([b"\xe4\xb8na\xff\xff!"])
    assert rows_of(TOKENIZER.tokenize_with_offsets(text)) == [[(4, 2, 4, 1, 3), (7, 6, 7, 5, 6)]]


@given(st.lists(st.binary(max_size=12), max_size=4))
def test_decodes_as_python_does(rows: list[bytes]) -> None:
    decoded = decode(tf.constant(rows, tf.string))
    points, splits = decoded.points.numpy(), decoded.row_splits.numpy()
    for index, row in enumerate(rows):
        text = "".join(map(chr, points[splits[index] : splits[index + 1]]))
        assert text == row.decode("utf-8", "replace")


@given(st.lists(st.text(max_size=30), max_size=4))
def test_bytes_and_code_points_cut_the_same(rows: list[str]) -> None:
    offsets = TOKENIZER.tokenize_with_offsets(tf.constant(rows, tf.string))
    for text, tokens in zip(rows, rows_of(offsets), strict=True):
        for _, start_byte, end_byte, start, end in tokens:
            assert 0 <= start < end <= len(text)
            assert text.encode()[start_byte:end_byte].decode() == text[start:end]

"""Words of texts: by hand, and as the published tokenizer cuts them."""

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from kbert.text.byte_level_bpe.words import WordSplitter
from kbert.text.vocabulary import byte_characters
from tests.text.byte_level_bpe_cases import PARTS, texts

SPLITTER = WordSplitter()
SPLIT = tf.function(
    SPLITTER.split, input_signature=[tf.TensorSpec([None], tf.string)], autograph=False
)
BYTES = {character: byte for byte, character in enumerate(byte_characters())}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b", ["a", " b"]),
        ("don't 'll", ["don", "'t", " '", "ll"]),
        ("I'm we'll they'd it's you're I've", "I|'m| we|'ll| they|'d| it|'s| you|'re| I|'ve"),
        ("'S 'r x're're '' ''s 'sa", "'|S| '|r| x|'re|'re| ''| ''|s| '|sa"),
        ("a  b", ["a", " ", " b"]),
        ("a   b", ["a", "  ", " b"]),
        ("a\n\nb", ["a", "\n", "\n", "b"]),
        ("a\n\n\nb", ["a", "\n\n", "\n", "b"]),
        ("a \n", ["a", " \n"]),
        ("a1b2 12", ["a", "1", "b", "2", " 12"]),
        ("a.b--c _d", ["a", ".", "b", "--", "c", " _", "d"]),
        ("é½!\xa0\xa0ß", ["é", "½", "!", "\xa0", "\xa0", "ß"]),
        ("e\u0301x", ["e", "\u0301", "x"]),
        ("\x00a\x00", ["\x00", "a", "\x00"]),
        ("", []),
    ],
)
def test_words_by_hand(text: str, expected: list[str] | str) -> None:
    expected = expected.split("|") if isinstance(expected, str) else expected
    found = SPLITTER.split(tf.constant([text, text + " é"])).to_list()
    assert [word.decode() for word in found[0]] == expected
    if not text.endswith((" ", "\n")):
        assert [word.decode() for word in found[1]] == [*expected, " é"]


def test_broken_bytes_are_marks() -> None:
    found = SPLITTER.split(tf.constant([b"a\xff\xe2\x82 b"])).to_list()
    assert found == [[b"a", "\ufffd\ufffd".encode(), b" b"]]


@given(rows=st.lists(texts, min_size=1, max_size=4))
def test_random_texts_as_published(rows: list[str]) -> None:
    hold_to_published(rows)


def test_pairs_of_hard_parts_as_published() -> None:
    hold_to_published([a + b + a for a in PARTS for b in PARTS])


def hold_to_published(rows: list[str]) -> None:
    pre_tokenizers = pytest.importorskip("tokenizers").pre_tokenizers
    published = pre_tokenizers.ByteLevel(add_prefix_space=False)
    for row, words in zip(rows, SPLIT(tf.constant(rows)).to_list(), strict=True):
        expected = [word for word, _ in published.pre_tokenize_str(row)]
        assert words == [bytes(map(BYTES.__getitem__, word)) for word in expected], row

"""Words that are tokens, and words that are merged, by hand."""

import tensorflow as tf

from kbert.text.byte_level_bpe.byte_level_bpe import ByteLevelBPE
from kbert.text.byte_level_bpe.merge_table import build_merge_table
from kbert.text.byte_level_bpe.word_encoder import WordEncoder
from kbert.text.vocabulary import ROBERTA_TOKENS, Vocabulary, byte_characters
from tests.text.byte_level_bpe_cases import vocabulary_of

MERGES = [("b", "c"), ("a", "b"), ("ab", "c"), ("Ġ", "a")]


def encoded(vocabulary: Vocabulary, words: list[str]) -> list[list[str]]:
    encoder = WordEncoder(vocabulary, build_merge_table(vocabulary, MERGES))
    ids = encoder.encode(tf.constant(words, tf.string)).to_list()
    return [[vocabulary.tokens[number] for number in row] for row in ids]


def test_words_by_hand() -> None:
    """ "abc" is a token, which no text has: "b" and "c" are merged first."""
    found = encoded(vocabulary_of(MERGES), ["abc", "ab", " a", "x", "abc", "abab", " ", "é"])
    assert found == [
        ["a", "bc"],
        ["ab"],
        ["Ġa"],
        ["x"],
        ["a", "bc"],
        ["ab", "ab"],
        ["Ġ"],
        ["Ã", "©"],
    ]


def test_a_token_without_a_merge_and_a_special_one_are_spelled() -> None:
    vocabulary = Vocabulary([*vocabulary_of(MERGES).tokens, "xyz"], ROBERTA_TOKENS)
    assert encoded(vocabulary, ["xyz", "<s>"]) == [["x", "y", "z"], ["<", "s", ">"]]


def test_no_words() -> None:
    assert encoded(vocabulary_of(MERGES), []) == []


def test_a_token_of_other_characters_is_in_no_text():
    names = [*ROBERTA_TOKENS.names, *byte_characters(), "\u2039user>"]
    tokenizer = ByteLevelBPE(Vocabulary(names, ROBERTA_TOKENS), [])
    expected = [byte_characters()[byte] for byte in "\u2039u".encode()]
    assert tokenizer.tokens("\u2039u") == expected
    assert tokenizer.vocabulary.text_of("\u2039user>") == "\u2039user>"

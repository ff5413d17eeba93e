"""The tokenizers of kbert have what models ask of one."""

import tensorflow as tf

from kbert.text.tokenizer import Tokenizer, TokenOffsets
from kbert.text.vocabulary import Vocabulary
from kbert.text.wordpiece.wordpiece import WordPiece

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b"]


def test_wordpiece_is_one() -> None:
    tokenizer = WordPiece(Vocabulary(TOKENS))
    assert isinstance(tokenizer, Tokenizer)
    assert not isinstance(tokenizer.vocabulary, Tokenizer)


def test_offsets_in_bytes_and_in_code_points() -> None:
    """"ä ab": a letter of two bytes, stripped of its accent, and a word of two tokens."""
    found = WordPiece(Vocabulary(TOKENS)).tokenize_with_offsets(tf.constant(["ä ab"]))
    assert isinstance(found, TokenOffsets)
    assert [column.to_list() for column in found] == [
        [[5, 5, 6]], [[0, 3, 4]], [[2, 4, 5]], [[0, 2, 3]], [[1, 3, 4]]
    ]

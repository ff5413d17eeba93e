"""Training by hand: the most frequent pair first, and a vocabulary in RoBERTa's order."""

import sys

import pytest

from kbert.text.byte_level_bpe.byte_level_bpe import ByteLevelBPE
from kbert.text.byte_level_bpe.training import SPECIALS, train_byte_level_bpe
from kbert.text.vocabulary import ROBERTA_TOKENS, byte_characters
from tests.text.byte_level_bpe_cases import trained

TEXTS = ["low low low low low", "lower lower newest newest newest newest newest newest", "é"]


def test_training_by_hand() -> None:
    pytest.importorskip("tokenizers")
    vocabulary, merges = train_byte_level_bpe(iter(TEXTS), 266)
    # "es", "st" and "ne" six times each with others alike; "lo" seven times, at a tie with "ow".
    assert merges[0] in [("l", "o"), ("o", "w"), ("e", "s"), ("w", "e")]
    assert vocabulary.tokens[:5] == SPECIALS == ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
    assert set(vocabulary.tokens[5:261]) == set(byte_characters())
    assert list(vocabulary.tokens[261:]) == [left + right for left, right in merges]
    assert vocabulary.special_tokens == ROBERTA_TOKENS
    assert len(vocabulary) == 266


def test_same_texts_same_merges_and_what_they_make() -> None:
    pytest.importorskip("tokenizers")
    first, second = train_byte_level_bpe(TEXTS, 400), train_byte_level_bpe(TEXTS, 400)
    assert first == second
    assert len(first[0]) < 400  # no pair is left that occurs twice
    assert ByteLevelBPE(*first).tokens("low newest é")[-4:] == ["Ġnewest", "Ġ", "Ã", "©"]


def test_trained_vocabulary_has_the_size_that_was_asked() -> None:
    assert len(trained()[0]) == 1000


def test_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tokenizers")
    for wrong in (260, "300", 300.5):
        with pytest.raises(ValueError, match=f"at least 261, .* vocabulary_size={wrong!r}"):
            train_byte_level_bpe(TEXTS, wrong)
    for texts in ("abc", None, [b"abc"]):
        with pytest.raises(TypeError, match="`texts` must "):
            train_byte_level_bpe(texts, 300)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ImportError, match=r'pip install "\.\[bpe\]"'):
        train_byte_level_bpe(TEXTS, 300)

"""Vocabularies that are learned: what they must hold, by hand; nothing is left to chance."""

import os
import subprocess
import sys
from collections import Counter

import pytest

from kbert.text.vocabulary import BERT_TOKENS
from kbert.text.wordpiece.training import SPECIALS, count_words, train_wordpiece
from kbert.text.wordpiece.wordpiece import WordPiece

TEXTS = ["Playing, played; plays! PLAY", "the walk the walking the walked walks", "É 中文"]
VERBS = ("play", "walk", "talk", "jump", "land", "look", "work", "help", "want", "ask")
COUNTS = {
    **{f"{verb}{end}": 10 for verb in VERBS for end in ("ing", "ed", "s")},
    "the": 500,
    "of": 300,
    "rare": 1,
}


def test_words_by_hand():
    found = count_words([TEXTS[:1], TEXTS[1:], []])
    assert found == {
        **dict.fromkeys(["playing", "played", "plays", "play", "walk", "walking", "walked"], 1),
        **{"walks": 1, "the": 3, ",": 1, ";": 1, "!": 1, "e": 1, "中": 1, "文": 1},
    }
    cased = count_words([TEXTS], lowercase=False)
    assert cased["Playing"] == cased["PLAY"] == cased["É"] == 1 and "playing" not in cased
    assert count_words([["\ud800a"]]) == {"?": 1, "a": 1}  # what no UTF-8 can write


# What other normalizers fold, or take for a space, and this package's does not.
ODD = "Straße … 2 m² ½ 5 µg X™ ﬁn ΣΑΣ ας Ⅻ ＡＢ №7 ℃ İı 豈"
ODD += " a\u2028b x\u200by co\u00adop 10\xa0km \u037e"


@pytest.mark.parametrize("lowercase", [True, False])
def test_words_are_those_of_the_tokenizer(lowercase: bool):
    counts = count_words([[ODD, ODD]], lowercase)
    tokenizer = WordPiece(train_wordpiece(counts, 2000), lowercase)
    words = "".join(tokenizer.tokens(ODD)).replace("##", "")
    assert BERT_TOKENS.unknown not in words
    assert sorted(words * 2) == sorted("".join(counts.elements()))
    assert counts["straße" if lowercase else "Straße"] == counts["m²"] == counts["km"] == 2


def test_words_are_bert_s_own():
    """Against `tokenizers`, on code points between two letters: the alphabets, and some others."""
    tokenizers = pytest.importorskip("tokenizers")
    split = tokenizers.pre_tokenizers.BertPreTokenizer()
    some = [p for p in range(0x3000, 0x30000, 31) if not 0xD800 <= p < 0xE000]
    every = [*range(0x3000), *some]
    for lowercase in (True, False):
        normal = tokenizers.normalizers.BertNormalizer(lowercase=lowercase)
        for begin in range(0, len(every), 0x400):
            points = every[begin : begin + 0x400]
            text = " ".join(f"a{chr(point)}b" for point in points)
            wanted = Counter(w for w, _ in split.pre_tokenize_str(normal.normalize_str(text)))
            assert count_words([[text]], lowercase) == wanted, hex(points[0])


def test_frequent_words_and_ends_are_tokens():
    vocabulary = train_wordpiece(COUNTS, 64)
    assert vocabulary.tokens[: len(SPECIALS)] == SPECIALS
    tokens = set(vocabulary.tokens)
    assert len(vocabulary.tokens) == len(tokens) <= 64
    assert {"the", "of", "##ing", "##ed"} <= tokens and "playing" not in tokens
    letters = set("".join(COUNTS))
    assert letters <= tokens and {f"##{letter}" for letter in letters} <= tokens
    tokenizer = WordPiece(vocabulary)
    for word in COUNTS:
        pieces = tokenizer.tokens(word)
        assert "".join(piece.removeprefix("##") for piece in pieces) == word
        assert len(pieces) == 1 or word not in ("the", "of")


def test_a_size_that_letters_alone_exceed():
    letters = len(set("".join(COUNTS)))
    # By hand: special tokens, each letter as a beginning and inside a word, the commonest word.
    message = f"`vocabulary_size` must be at least {5 + 2 * letters + 1} for the characters of"
    with pytest.raises(ValueError, match=message):
        train_wordpiece(COUNTS, 20)
    with pytest.raises(ValueError, match="`counts` must hold words. Received: none"):
        train_wordpiece({}, 20)


def test_few_words_give_few_tokens():
    assert len(train_wordpiece({"ab": 3}, 100).tokens) < 20


@pytest.mark.slow
def test_nothing_is_left_to_chance():
    """Sets of strings have another order in each process."""
    program = (
        "from kbert.text.wordpiece.training import train_wordpiece\n"
        f"print(train_wordpiece({COUNTS!r}, 60).tokens)"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert said == {f"{train_wordpiece(dict(reversed(COUNTS.items())), 60).tokens}\n"}

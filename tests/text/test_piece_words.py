"""Words of pieces; all expected values by hand."""

import numpy as np
import pytest

from kbert.text.piece_words import piece_words

CASES = {
    "letters": ("▁a ▁gard en ▁ ball </s>", "a garden ball </s>"),
    "no space at the start": ("the ▁end", "the end"),
    "punctuation": ("▁no , ▁yes ! ? </s>", "no , yes ! ? </s>"),
    "within a word": ("▁don ' t ▁3 . 5 ▁ice - cold .", "don't 3.5 ice-cold ."),
    "quoted": ("▁( so ) ▁end", "(so ) end"),
    "chinese": ("▁ 你好 世界 。", "你好 世界 。"),
    "chinese and latin": ("▁GPU 很 快 ok", "GPU 很 快 ok"),
    "burmese, a mark alone": ("▁မင်္ဂလာ ပါ ်", "မင်္ဂလာ ပါ်"),
    "hindi has spaces": ("▁नम स्ते ▁दुनिया", "नमस्ते दुनिया"),
    "bytes": ("▁caf <0xC3> <0xA9> s ▁ <0xF0> <0x9F>", "cafés \ufffd"),
    "unknown": ("▁ <unk> ▁na <unk> ve", "<unk> na<unk>ve"),
    "the end": ("▁a </s>", "a </s>"),
    "nothing": ("", ""),
}


@pytest.mark.parametrize("name", CASES)
def test_words(name):
    pieces, words = (text.split(" ") if text else [] for text in CASES[name])
    found = piece_words(pieces)
    assert found.words == words
    assert len(found.numbers) == len(pieces)


def test_each_piece_has_a_word():
    assert piece_words("▁a ▁gard en ▁ ball </s>".split()).numbers == [0, 1, 1, 2, 2, 3]


def test_sums_and_means():
    words = piece_words(["▁a", "▁gard", "en"])
    values = np.array([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0]])
    np.testing.assert_array_equal(words.summed(values), [[0.5, 0.5], [0, 1], [0.5, 0.5]])
    np.testing.assert_array_equal(words.averaged(values), [[0.5, 0.25, 0.25], [0.25, 0.75, 0.0]])


def test_no_pieces():
    words = piece_words([])
    assert words.summed(np.zeros((2, 0))).shape == (2, 0)
    assert words.averaged(np.zeros((0, 2))).shape == (0, 2)

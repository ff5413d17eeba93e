"""Sentences of given words."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from kbert.tasks.ner.token_tagging import WordInputs, read_word_inputs

SENTENCES = [["The", "U.K.", "中"], [], ["é", "\u200b", "b"]]


@pytest.mark.parametrize(
    "x",
    [SENTENCES, tuple(map(tuple, SENTENCES)), SimpleNamespace(words=SENTENCES)],
)
def test_accepted_forms(x):
    found = read_word_inputs(x)
    assert isinstance(found, WordInputs) and len(found) == 3
    assert found.words == SENTENCES
    assert found.texts == ["The U.K. 中", "", "é \u200b b"]


def test_no_sentences():
    assert len(read_word_inputs([])) == 0


def test_where_words_begin():
    found = read_word_inputs(SENTENCES)
    for number, (words, text) in enumerate(zip(SENTENCES, found.texts)):
        starts = found.word_starts(number)
        assert starts.dtype == np.int64 and len(starts) == len(words)
        assert [text[s : s + len(word)] for s, word in zip(starts, words)] == words
    assert found.word_starts(0).tolist() == [0, 4, 9]


@pytest.mark.parametrize("x", [{"token_ids": np.zeros((2, 3))}, np.zeros((2, 3)), None, "a b"])
def test_anything_else_is_none(x):
    assert read_word_inputs(x) is None


@pytest.mark.parametrize(
    "x, message",
    [
        ([["a"], "b c"], "`x[1]` must be a list of words. Received: 'b c'"),
        (["a"], "`x[0]` must be a list of words. Received: 'a'"),
        ([["a", "b c"]], "`x[0]` must hold words without blanks. Received: 'b c'"),
        ([["a"], ["b", ""]], "`x[1]` must hold words without blanks. Received: ''"),
        ([["a", 3]], "`x[0]` must hold words without blanks. Received: 3"),
    ],
)
def test_wrong_forms(x, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_word_inputs(x)

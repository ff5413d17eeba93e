"""Shortlists: IBM's model 1 on sentences whose words are known."""

import keras
import numpy as np
import pytest

from kbert.decoding.shortlist import Shortlist, learn_shortlist

GERMAN = {word: i for i, word in enumerate(". das haus buch ein".split())}
ENGLISH = {word: i for i, word in enumerate(". the house book a".split())}
# Koehn, Statistical Machine Translation, 2010, section 4.2: what means what follows from all three.
PAIRS = [("das haus", "the house"), ("das buch", "the book"), ("ein buch", "a book")]


def learned(pairs=PAIRS, **numbers):
    sources = [np.array([GERMAN[word] for word in s.split()]) for s, _ in pairs]
    targets = [np.array([ENGLISH[word] for word in t.split()]) for _, t in pairs]
    return learn_shortlist(sources, targets, len(GERMAN), **numbers)


def test_words_find_their_translations():
    found = learned(translations=1, everywhere=1).translations[1:, 0]
    assert found.tolist() == [ENGLISH[word] for word in ("the", "house", "book", "a")]


def test_the_likeliest_translations_come_first_and_none_is_made_up():
    table = learned(translations=4, everywhere=1).translations
    assert set(table[GERMAN["haus"]]) == {ENGLISH["the"], ENGLISH["house"]}
    assert table[GERMAN["haus"], 0] == ENGLISH["house"]
    # No sentence has the full stop: it gets what stands everywhere.
    assert set(table[GERMAN["."]]) == {ENGLISH["the"]}


def test_the_most_frequent_tokens_stand_everywhere():
    assert learned(everywhere=2).everywhere.tolist() == [ENGLISH["the"], ENGLISH["book"]]
    assert len(learned(everywhere=50).everywhere) == 4  # all that occur


def test_many_pairs_are_thinned_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("kbert.decoding.shortlist._MOST_PAIRS", 24)
    many = learned([*PAIRS, *PAIRS, *PAIRS, PAIRS[0]], translations=1)  # 40 pairs: every second
    assert many.translations[GERMAN["haus"], 0] == ENGLISH["house"]


def test_a_configuration_holds_all():
    shortlist = Shortlist([[3, 1], [2, 2], [0, 5]], [4, 1])
    config = keras.saving.serialize_keras_object(shortlist)
    again = keras.saving.deserialize_keras_object(config)
    np.testing.assert_array_equal(again.translations, shortlist.translations)
    np.testing.assert_array_equal(again.everywhere, shortlist.everywhere)


@pytest.mark.parametrize(
    "arrays, message",
    [
        (([1, 2], [1]), "`translations` must be token ids.*rank 2. Received: int64 of shape"),
        (([[1.0]], [1]), "`translations` must be token ids.*Received: float64"),
        (([[1]], [-1]), "`everywhere` must be token ids, at least 0"),
    ],
)
def test_arrays_that_are_none(arrays, message):
    with pytest.raises(ValueError, match=message):
        Shortlist(*arrays)


def test_vocabularies_that_do_not_fit():
    shortlist = Shortlist([[1], [7]], [2])
    shortlist.check(2, 8)
    for sizes in ((3, 8), (2, 7)):
        with pytest.raises(ValueError, match="Received: 2 rows, ids up to 7"):
            shortlist.check(*sizes)


def test_sentences_that_teach_nothing():
    one = [np.array([1])]
    with pytest.raises(ValueError, match="equally many sentences.*Received: 1 and 2"):
        learn_shortlist(one, one * 2, 2)
    with pytest.raises(ValueError, match="at least one. Received: 0 and 0"):
        learn_shortlist([], [], 2)
    with pytest.raises(ValueError, match="must have tokens"):
        learn_shortlist(one, [np.zeros(0, int)], 2)
    with pytest.raises(ValueError, match="`translations` must be at least 1. Received: 0"):
        learn_shortlist(one, one, 2, translations=0)

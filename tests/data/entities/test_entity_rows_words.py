import pytest

from kbert.data.entities.entity_rows import Entity, EntityExamples, tagged_words


def examples(text, *entities):
    return EntityExamples([text], [[Entity(*entity) for entity in entities]], None, "by hand", [7])


def test_words_and_tags():
    text = "Ann (of York) isn't @home, U.K."
    found = tagged_words(examples(text, (0, 3, "PER"), (8, 12, "LOC")))
    assert found.words == [["Ann", "(", "of", "York", ")", "isn't", "@home", ",", "U.K", "."]]
    assert found.tags == [["B-PER", "O", "O", "B-LOC", "O", "O", "O", "O", "O", "O"]]


def test_the_border_of_an_entity_is_the_border_of_a_word():
    found = tagged_words(examples("NewYork-based", (3, 7, "LOC")), "iobes")
    assert found.words == [["New", "York", "-", "based"]]
    assert found.tags == [["O", "S-LOC", "O", "O"]]


def test_an_entity_without_a_word():
    with pytest.raises(ValueError, match="by hand, line 7: an entity must hold a word. Received: "):
        tagged_words(examples("a  b", (1, 2, "X")))


def test_texts_without_words_are_left_out_and_lines_kept():
    every = EntityExamples(["", "a"], [[], []], None, "by hand", [1, 2])
    found = tagged_words(every)
    assert (found.words, found.lines) == ([["a"]], [2])
    assert tagged_words(EntityExamples(["a"], None, None, "by hand", [1])).tags is None


@pytest.mark.parametrize(
    "text, place, words",
    [
        ("वह दिल्ली में है", 1, ["वह", "दिल्ली", "में", "है"]),
        ("o Sa\u0303o Paulo", 1, ["o", "Sa\u0303o", "Paulo"]),
        ("می\u200cخواهم", 0, ["می\u200cخواهم"]),
    ],
)
def test_a_word_goes_on_with_combining_marks(text, place, words):
    start = text.index(words[place])
    found = tagged_words(examples(text, (start, start + len(words[place]), "LOC")))
    assert found.words == [words]
    assert found.tags == [["B-LOC" if i == place else "O" for i in range(len(words))]]


@pytest.mark.parametrize(
    "text, words",
    [
        ("Kranken\u00adhaus Bonn", ["Kranken\u00adhaus", "Bonn"]),
        ("\u200fBonn\u200f liegt", ["Bonn", "liegt"]),
        ("I \u2764\ufe0f Bonn", ["I", "\u2764", "Bonn"]),
        ("\u200bBonn", ["Bonn"]),
    ],
)
def test_what_tokenizers_drop_is_no_word(text, words):
    found = tagged_words(examples(text, (0, len(text), "LOC")))
    assert found.words == [words]
    assert found.tags == [["B-LOC", *["I-LOC"] * (len(words) - 1)]]


def test_each_ideograph_is_a_word():
    found = tagged_words(examples("我在北京大学工作。a中b", (2, 4, "LOC")))
    assert found.words == [[*"我在北京大学工作。", "a", "中", "b"]]
    assert found.tags == [["O", "O", "B-LOC", "I-LOC", *["O"] * 8]]


def test_words_to_be_measured_on_do_not_tell_where_entities_are():
    text = "pre-Paris NewYork-based, Ann"
    entities = [(4, 9, "LOC"), (10, 13, "X"), (13, 17, "LOC"), (25, 28, "PER")]
    found = tagged_words(examples(text, *entities), cut=False)
    assert found.words == [["pre-Paris", "NewYork-based", ",", "Ann"]]
    # Of two within a word the first one counts.
    assert found.tags == [["B-LOC", "B-X", "O", "B-PER"]]
    assert tagged_words(examples(text, *entities)).words[0][:4] == ["pre", "-", "Paris", "New"]

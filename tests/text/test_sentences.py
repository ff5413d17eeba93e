"""Where sentences end: by hand."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert.text.sentences import _END, _marks, split_sentences

# Each case is written with "|" where a sentence ends.
CASES = [
    # Titles, initials, acronyms, and what follows them.
    "Mr. and Mrs. Smith met Dr. J. K. Rowling at 5 p.m. in the U.S.|The meeting was short.",
    "He works at Acme Inc. in Boston.|It pays, etc.|The end.",
    "See Fig. 3, No. 5 and pp. 7-9.|He said no.|Everything else, e.g. this, is fine.",
    "St. Paul lived there.|Gen. Lee did not.|It was I.|You knew.",
    "They sold Lt.-Col. Brown a house.|Brown was glad.",
    # Numbers.
    "Version 3.14 is out.|2.0 was bad.|In 1990.|In May.",
    "1. Introduction and more",
    "2.3. The second part.|IV. The fourth part.",
    # Quotes, brackets, and small letters after them.
    '"Madam Mope!" cried the voice.|"Where?" he asked.|"There!"|"No."|It ended.',
    "It is so (they say.)|(Not I.)|\u201cWell\u2026\u201d|\u2018Yes.\u2019",
    "iPhone 5 is old.|Perhaps.",
    # Ellipses and rows of marks.
    "Well... maybe.|Well...|Maybe not!|What?!|Oh.",
    "[ ... ] and more",
    # What is no white space is no end.
    "Wait...what is kbert.text?|Hello!World",
    # Other languages.
    "Am 3. Oktober ist frei.|Er kam z. B. Dienstag, d. h. bald.|Das war Prof. Dr. M\u00fcller.",
    "\u00ab Vraiment ? \u00bb dit-il \u00e0 M. Dupont et Mme. Curie.|Oui.",
    "\u00bfQu\u00e9?|\u00a1No!|Bien.",
    "\u0412\u0440\u0435\u043c\u044f.|\u0414\u0435\u043d\u044c!",
    # Other full stops; they need no white space.
    "\u4ed6\u6765\u4e86\u3002|\u4f60\u597d\uff01|\u300c\u662f\u5417\uff1f\u300d|\u4ed6\u95ee\u3002",
    "\u092f\u0939 \u090f\u0915 \u0939\u0948\u0964|\u092f\u0939 \u0926\u094b \u0939\u0948\u0964",
    "\u0647\u0644 \u0623\u0646\u062a \u0647\u0646\u0627\u061f|\u0646\u0639\u0645\u06d4",
]


@pytest.mark.parametrize("case", CASES)
def test_by_hand(case):
    sentences = case.split("|")
    assert split_sentences(" ".join(sentences)) == sentences


def test_other_full_stops_need_no_space():
    assert split_sentences("\u4ed6\u6765\u4e86\u3002\u4f60\u597d\uff01\u662f") == [
        "\u4ed6\u6765\u4e86\u3002",
        "\u4f60\u597d\uff01",
        "\u662f",
    ]


def test_lines_and_white_space():
    assert split_sentences("") == split_sentences(" \n\t\n ") == []
    assert split_sentences(" One \r\ntwo.  Three.\n\n") == ["One", "two.", "Three."]


@given(st.one_of(st.text(), st.text(alphabet='aB1.!?\u3002"\') (\n')))
def test_nothing_but_white_space_is_lost(text):
    sentences = split_sentences(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(sentence and sentence == sentence.strip() for sentence in sentences)
    assert all("\n" not in sentence for sentence in sentences)


@given(st.one_of(st.text(), st.text(alphabet='aB1.!?\u2026\u3002\uff01"\') (')))
def test_marks_are_those_that_the_expression_finds(text):
    assert [m.span() for m in _marks(text)] == [m.span() for m in _END.finditer(text)]


@pytest.mark.parametrize(
    "unit", [".", ". ", "a. ", "a! (", '."', "! ((", "Dr. ", "etc. x ", "\u3002", "(. ", "x"]
)
def test_the_time_is_linear(unit):
    """A quarter of a megabyte of what makes regular expressions slow; limits are generous."""
    begin = time.process_time()
    split_sentences(unit * (250_000 // len(unit)))
    assert time.process_time() - begin < 5

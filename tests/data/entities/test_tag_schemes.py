"""Tag schemes. Expected tags by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert.data.entities.tag_schemes import (
    SCHEMES,
    convert,
    detect_scheme,
    impossible_tag,
    parse_tag,
    scheme_name,
    spans_of,
    tags_of,
)

# Two entities of one type side by side, one of another type at once, one alone.
SPANS = [("PER", 0, 2), ("PER", 2, 3), ("ORG", 3, 5), ("creative-work", 6, 7)]
WRITTEN = {
    "bio": "B-PER I-PER B-PER B-ORG I-ORG O B-creative-work",
    "iob1": "I-PER I-PER B-PER I-ORG I-ORG O I-creative-work",
    "iobes": "B-PER E-PER S-PER B-ORG E-ORG O S-creative-work",
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_each_scheme_in_and_out(scheme):
    tags = WRITTEN[scheme].split()
    assert spans_of(tags, scheme) == SPANS
    assert tags_of(SPANS, 7, scheme) == tags
    assert tags_of(reversed(SPANS), 7, scheme) == tags
    assert impossible_tag(tags, scheme) is None
    for target in SCHEMES:
        assert convert(tags, scheme, target) == WRITTEN[target].split()


def test_longer_entities():
    assert spans_of("B-X I-X I-X E-X".split(), "iobes") == [("X", 0, 4)]
    assert tags_of([("X", 1, 5)], 6, "iobes") == "O B-X I-X I-X E-X O".split()


def test_bilou_letters_are_read():
    assert parse_tag("L-PER") == ("E", "PER")
    assert parse_tag("U-PER") == ("S", "PER")
    bilou = WRITTEN["iobes"].replace("E-", "L-").replace("S-", "U-").split()
    assert spans_of(bilou, "bilou") == SPANS
    assert convert(bilou, "bilou", "iobes") == WRITTEN["iobes"].split()


def test_tags_without_a_type():
    assert spans_of("O B I B O".split(), "bio") == [("", 1, 3), ("", 3, 4)]
    assert tags_of([("", 1, 3), ("", 3, 4)], 5, "bio") == "O B I B O".split()


def test_types_may_hold_hyphens_and_odd_letters():
    assert parse_tag("B-a-b") == ("B", "a-b")
    assert parse_tag("I--") == ("I", "-")
    assert parse_tag("I-Größe\u2028") == ("I", "Größe\u2028")


def test_names_of_schemes():
    assert scheme_name("IOB2") == "bio"
    assert scheme_name("BIOES") == scheme_name("bilou") == "iobes"
    with pytest.raises(ValueError, match=r"`scheme` must be one of .*Received: scheme='ioe1'"):
        scheme_name("ioe1")


@pytest.mark.parametrize("tag", ["", "X-PER", "B-", "BPER", "b-PER", "O-PER", "NNP", "B_PER"])
def test_what_is_no_tag(tag):
    with pytest.raises(ValueError, match=r"`tag` must be O, or B, I, E or S .* Received: tag="):
        parse_tag(tag)


# scheme, tags, the first impossible word, and what is told
IMPOSSIBLE = [
    ("bio", "O I-A I-A", 1, "I- must follow B- or I- of its type, not O"),
    ("bio", "B-A I-B", 1, "I- must follow .*, not B-A"),
    ("bio", "I-A", 0, "I- must follow .*, not O"),
    ("bio", "B-A E-A", 1, "a tag of bio must begin with one of B, I, O"),
    ("iob1", "O B-A I-A", 1, "B- must follow a word of the same type, not O"),
    ("iob1", "I-A B-B", 1, "B- must follow .*, not I-A"),
    ("iobes", "B-A O", 0, "B- must go on with I- or E- of its type, not O"),
    ("iobes", "B-A", 0, "B- must go on with I- or E- of its type, not O"),
    ("iobes", "B-A I-A B-A E-A", 1, "I- must go on .*, not B-A"),
    ("iobes", "O E-A", 1, "E- must follow B- or I- of its type, not O"),
    ("iobes", "S-A I-A", 1, "I- must follow .*, not S-A"),
    ("iobes", "B-A E-B", 0, "B- must go on .*, not E-B"),
    ("iobes", "B-A E-A E-A", 2, "E- must follow .*, not E-A"),
]


@pytest.mark.parametrize("scheme, tags, word, message", IMPOSSIBLE)
def test_impossible_tags(scheme, tags, word, message):
    tags = tags.split()
    found = impossible_tag(tags, scheme)
    assert found is not None and found[0] == word
    with pytest.raises(ValueError, match=rf"`tags`, word {word}: {message}\. Received: '"):
        spans_of(tags, scheme)


@pytest.mark.parametrize(
    "spans, length",
    [
        ([("A", 1, 1)], 3),
        ([("A", 2, 4)], 3),
        ([("A", -1, 1)], 3),
        ([("A", 0, 2), ("B", 1, 3)], 3),
        ([("A", 0, 1), ("A", 0, 1)], 3),
    ],
)
def test_wrong_spans(spans, length):
    with pytest.raises(ValueError, match=r"`spans` must hold at least a word each, lie within 3"):
        tags_of(spans, length, "bio")


@pytest.mark.parametrize(
    "sentences, scheme",
    [
        (["O O"], "bio"),
        (["B-A I-A", "O B-B"], "bio"),
        (["I-A I-A", "O"], "iob1"),
        (["I-A B-A", "O I-B"], "iob1"),
        (["O", "S-A"], "iobes"),
        (["O", "B-A L-A"], "iobes"),
        # One mistake in BIO data does not make them IOB1, nor the other way round.
        (["B-A I-A", "O B-A", "O I-A"], "bio"),
        (["I-A", "O I-A", "O B-A"], "iob1"),
        (["B-A B-A"], "bio"),
        ([], "bio"),
    ],
)
def test_detect_scheme(sentences, scheme):
    assert detect_scheme([sentence.split() for sentence in sentences]) == scheme


def test_detection_meets_what_is_no_tag():
    with pytest.raises(ValueError, match=r"Received: tag='NNP'"):
        detect_scheme([["O", "NNP"]])


@st.composite
def sentences(draw):
    """Spans from left to right, and the number of words."""
    spans, place = [], 0
    for gap, words, type in draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.sampled_from(["A", "B", ""])))
    ):
        spans.append((type, place + gap, place + gap + words))
        place = spans[-1][2]
    return spans, place + draw(st.integers(0, 2))


@given(sentences())
def test_spans_survive_every_scheme(drawn):
    spans, length = drawn
    for scheme in SCHEMES:
        tags = tags_of(spans, length, scheme)
        assert len(tags) == length
        assert spans_of(tags, scheme) == spans

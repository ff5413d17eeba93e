"""Tagged sentences and their schemes. Expected values by hand."""

import pytest

from kbert.data.entities.tagged_sentences import TaggedSentences, in_scheme


def sentences(*tags, **changes):
    split = [each.split() for each in tags]
    columns = {
        "words": [[f"w{i}" for i in range(len(each))] for each in split],
        "tags": split,
        "documents": [0] * len(split),
        "source": "f.conll",
        "lines": [10 * (i + 1) for i in range(len(split))],
    }
    return TaggedSentences(**{**columns, **changes})


def test_what_it_holds():
    given = sentences("O B-PER", "B-LOC I-LOC O", documents=[0, 1])
    assert len(given) == 2
    assert given.texts == ["w0 w1", "w0 w1 w2"]
    assert given.labels == ["LOC", "PER"]
    chosen = given.select([1])
    assert (chosen.words, chosen.tags) == ([["w0", "w1", "w2"]], [["B-LOC", "I-LOC", "O"]])
    assert (chosen.documents, chosen.lines, chosen.source) == ([1], [20], "f.conll")
    assert given.head(1).lines == [10]
    assert given.head(5).lines == [10, 20]
    with pytest.raises(ValueError, match=r"`count` must be at least 1\. Received: count=0"):
        given.head(0)


def test_untagged():
    given = sentences("O O", tags=None)
    assert given.labels == []
    assert given.select([0]).tags is None
    with pytest.raises(ValueError, match=r"f\.conll: the sentences must have tags\. Received: no"):
        in_scheme(given)


def test_lengths():
    with pytest.raises(ValueError, match=r"`documents` must be as long as `words`, 1\. .*2 items"):
        sentences("O", documents=[0, 0])
    message = r"f\.conll, line 10: each of the sentence's 2 words must have a tag\..*1 tags"
    with pytest.raises(ValueError, match=message):
        sentences("O O", tags=[["O"]])


def test_the_line_of_a_word_where_a_row_is_a_sentence():
    given = sentences("O O E-A", is_line_a_word=False)
    assert sentences("O O E-A").line_of(0, 2) == 12 and given.line_of(0, 2) == 10
    with pytest.raises(ValueError, match=r"f\.conll, line 10 \(sentence 1, word 3\)"):
        in_scheme(given)
    with pytest.raises(ValueError, match=r"f\.conll, line 10: "):
        in_scheme(sentences("O X-Y-", tags=[["O", "?"]], is_line_a_word=False))


def test_conversion():
    given = sentences("I-A B-A O", "I-B I-B")
    assert in_scheme(given).tags == [["B-A", "B-A", "O"], ["B-B", "I-B"]]
    assert in_scheme(given, "iobes").tags == [["S-A", "S-A", "O"], ["B-B", "E-B"]]
    assert in_scheme(given, "iob1").tags == given.tags
    assert given.tags == [["I-A", "B-A", "O"], ["I-B", "I-B"]]


def test_impossible_tags_name_the_sentence_and_the_line():
    given = sentences("B-A I-A", "O B-A", "O O I-A B-B")
    message = (
        r"f\.conll, line 32 \(sentence 3, word 3\): I- must follow B- or I- of its type, not O\. "
        r"Received: 'I-A' in the scheme bio\. Correct the tags of this sentence\.$"
    )
    with pytest.raises(ValueError, match=message):
        in_scheme(given)


def test_what_is_no_tag_names_the_line():
    message = r"f\.conll, line 21: `tag` must be O, or B, .*Received: tag='NNP'"
    with pytest.raises(ValueError, match=message):
        in_scheme(sentences("O", "O NNP"))
    with pytest.raises(ValueError, match=r"`scheme` must be one of .*'xyz'"):
        in_scheme(sentences("O"), "xyz")

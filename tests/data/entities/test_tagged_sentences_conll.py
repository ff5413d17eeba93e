"""CoNLL columns. Fixtures of our own; expected values by hand.

The counts of the public files are those of their distributors.
"""

from pathlib import Path

import pytest

from kbert.data.entities.tag_schemes import detect_scheme
from kbert.data.entities.tagged_sentences import in_scheme, read_conll

FIXTURES = Path(__file__).parents[1] / "fixtures" / "conll2003"


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def test_four_columns_and_documents():
    sentences = read_conll(FIXTURES / "train.txt")
    assert sentences.words == [
        ["Ada", "Möller", "left", "Tarn", "Harbour", "."],
        ["The", "ferry", "of", "Orm", "Lines", "waited"],
        ["Norsk", "songs", "#", "1"],
    ]
    assert sentences.tags[0] == ["B-PER", "I-PER", "O", "B-LOC", "I-LOC", "O"]
    assert sentences.documents == [0, 0, 1]
    assert sentences.lines == [3, 10, 19]
    assert sentences.labels == ["LOC", "MISC", "ORG", "PER"]
    assert sentences.source.endswith("train.txt")
    chunks = read_conll(FIXTURES / "train.txt", tag_column=2)
    assert chunks.tags[2] == ["B-NP", "I-NP", "B-NP", "I-NP"]


def test_no_blank_line_behind_the_last_sentence():
    sentences = read_conll(FIXTURES / "test.txt")
    assert sentences.words == [["Supplies", "come"]]
    assert sentences.documents == [0]


@pytest.mark.parametrize(
    "content",
    [
        "a O\nb B-X\n\nc O\n",
        "a\tO\nb\tB-X\n\nc\tO\n",
        "a O\r\nb B-X\r\n\r\nc O\r\n",
        "\ufeffa O\nb B-X\n\nc O",
        "\n\na  O\nb \t B-X\n \t \n\n\t\nc O\n\n\n",
        " a O \nb B-X\t\n\t\nc O\n",
        "a O\nb B-X\n\r\nc O\n",
    ],
)
def test_blanks_line_ends_and_byte_order_mark(tmp_path, content):
    sentences = read_conll(write(tmp_path / "d.conll", content))
    assert sentences.words == [["a", "b"], ["c"]]
    assert sentences.tags == [["O", "B-X"], ["O"]]


def test_documents(tmp_path):
    content = "a O\n-DOCSTART- O\n-DOCSTART-\n\nb O\n-DOCSTART- -X- -X- O\nc O\n\nd O\n-DOCSTART-\n"
    sentences = read_conll(write(tmp_path / "d.conll", content))
    # The mark ends a sentence, too; marks without a sentence between them count once.
    assert sentences.words == [["a"], ["b"], ["c"], ["d"]]
    assert sentences.documents == [0, 1, 2, 2]
    assert sentences.lines == [1, 5, 7, 9]


def test_odd_words(tmp_path):
    # No comments; only "\n" ends a line, only spaces and tabs end a word.
    content = "# O\n#tag O\na\u00a0b O\nx\u2028y O\nz\x0c\x85z O\n\u200b O\n"
    sentences = read_conll(write(tmp_path / "d.conll", content))
    words = ["#", "#tag", "a\u00a0b", "x\u2028y", "z\x0c\x85z", "\u200b"]
    assert sentences.words == [words]


def test_words_without_tags(tmp_path):
    path = write(tmp_path / "d.txt", "a\nb\n\nc\n")
    sentences = read_conll(path, labeled=False)
    assert (sentences.words, sentences.tags) == ([["a", "b"], ["c"]], None)
    assert read_conll(FIXTURES / "train.txt", labeled=False).tags is None
    message = (
        r"d\.txt, line 1: a row must have a word and, in another column, its tag, with blanks or "
        r"tabs between\. Received: 'a', for the tag in column -1 of 1$"
    )
    with pytest.raises(ValueError, match=message):
        read_conll(path)


@pytest.mark.parametrize(
    "content, options, message",
    [
        ("", {}, r"d\.conll: the file must hold sentences\. Received: an empty file"),
        ("\n \t\n", {}, r"d\.conll: the file must hold sentences\. Received: an empty file"),
        ("-DOCSTART- O\n\n", {}, r"must hold sentences\. Received: no row of words"),
        (
            "a O\n\nb x O\n",
            {},
            r"d\.conll, line 3: each row must have 2 columns, as line 1 has\. Received: 3 columns "
            r"\('b x O'\)",
        ),
        ("a x O\nb\n", {}, r"d\.conll, line 2: each row must have 3 columns.*1 columns"),
        ("a O\n\tO\n", {}, r"d\.conll, line 2: each row must have 2 columns"),
        ("a O\nb \u00a0\n", {}, r"line 2: the tag must not be empty .*xa0'"),
        (b"a B\rb O\r\rc O\r", {}, r"d\.conll, line 1: lines must end in a line feed"),
        ("a O\n\u00a0 O\n", {}, r"line 2: the word must not be empty or white space.*xa0'"),
        ("a O\n", {"tag_column": 2}, "line 1: the column of the tags must be one of 2. Rec"),
        ("a O\n", {"tag_column": 0}, r"line 1: a row must have .* in another column, its tag"),
        (b"a O\ncaf\xe9 O\n", {}, r"d\.conll, line 2: the file must be UTF-8.*byte 0xe9"),
        ("a O\n".encode("utf-16"), {}, r"d\.conll, line 1: .*It looks like UTF-16"),
    ],
)
def test_errors_name_file_and_line(tmp_path, content, options, message):
    with pytest.raises(ValueError, match=message):
        read_conll(write(tmp_path / "d.conll", content), **options)


@pytest.mark.parametrize(
    "name, sentences, scheme, types",
    [
        pytest.param("wnut17/wnut17train.conll", 3_394, "bio", 6, marks=pytest.mark.slow),
        ("wnut17/emerging.dev.conll", 1_009, "bio", 6),
        ("wnut17/emerging.test.annotated", 1_287, "bio", 6),
        ("wikigold/wikigold.conll.txt", 1_696, "iob1", 4),
    ],
)
def test_public_files(shared_data, name, sentences, scheme, types):
    read = read_conll(shared_data / "ner" / name)
    assert len(read) == sentences
    assert len(read.labels) == types
    assert detect_scheme(read.tags) == scheme
    for target in ("bio", "iob1", "iobes"):
        there = in_scheme(read, target)
        assert in_scheme(there, scheme).tags == read.tags


def test_documents_of_wikigold(shared_data):
    # 145 -DOCSTART- lines, each behind its document.
    read = read_conll(shared_data / "ner" / "wikigold" / "wikigold.conll.txt")
    assert sorted(set(read.documents)) == list(range(145))

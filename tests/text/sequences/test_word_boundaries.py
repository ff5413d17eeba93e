"""Words by hand, by `str.split`, and what must hold of words of any text."""

import string

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from kbert.text.sequences.word_boundaries import Units, every_token, spaced_words, text_words
from kbert.text.tokenizer import TokenOffsets
from kbert.text.vocabulary import Vocabulary
from kbert.text.wordpiece.wordpiece import WordPiece
from tests import small_pipelines

MARKS = ".,!?'’-()@#&“”:…"
VOCABULARY = Vocabulary(
    [
        *("[PAD]", "[UNK]", "[CLS]", "[SEP]"),
        *string.ascii_lowercase,
        *(f"##{letter}" for letter in string.ascii_lowercase),
        *MARKS,
    ]
)
TOKENIZER = WordPiece(VOCABULARY)


def as_tensor(texts: list[str | bytes]) -> tf.Tensor:
    encoded = [text.encode() if isinstance(text, str) else text for text in texts]
    return tf.constant(encoded, tf.string, shape=(len(encoded),))


@tf.function(input_signature=[tf.TensorSpec((None,), tf.string)], autograph=False)
def words_in_a_graph(text: tf.Tensor) -> tuple:
    offsets = TOKENIZER.tokenize_with_offsets(text)
    return offsets, text_words(offsets, VOCABULARY), spaced_words(text, offsets)


def cuts(offsets: TokenOffsets, units: Units, texts: list[str]) -> list[list[str]]:
    """The words as they stand in the texts."""
    found = []
    for row, text in enumerate(texts):
        start, end = (column[row].numpy() for column in (offsets.start, offsets.end))
        places = zip(units.first[row].numpy(), units.last[row].numpy(), strict=True)
        found.append([text[start[first] : end[last]] for first, last in places])
    return found


def runs(units: Units, row: int) -> list[list[int]]:
    """The tokens of each word of a row."""
    places = zip(units.first[row].numpy(), units.last[row].numpy(), strict=True)
    return [list(range(first, last + 1)) for first, last in places]


# Text, and its words with "|" between.
BY_HAND = [
    ("", ""),
    (" \t\n ", ""),
    ("a film", "a|film"),
    ("U.K. rules", "U.K|.|rules"),
    ("(good-bad), well-known", "(|good-bad|)|,|well-known"),
    ("didn't", "didn't"),
    ("rock'n'roll!!", "rock'n'roll|!|!"),
    ("Peter's house", "Peter|'s|house"),
    ("Peter’s house", "Peter|’s|house"),
    ("it is Peter's.", "it|is|Peter|'s|."),
    ("“Peter's”", "“|Peter|'s|”"),
    ("the cats' toys", "the|cats|'|toys"),
    ("@user said #topic.", "@user|said|#topic|."),
    ("a @ b # c", "a|@|b|#|c"),
    ("@@user", "@|@|user"),
    ("me@home AT&T", "me@home|AT&T"),
    ("... wait…", ".|.|.|wait|…"),
    ("“quoted”, he said:", "“|quoted|”|,|he|said|:"),
    ("a.b.c a..b", "a.b.c|a..b"),
    # Without a token in the vocabulary a word is one [UNK], and Chinese characters are one each.
    ("中国 ρω!", "中国|ρω|!"),
    # Combining marks, and characters of no width, are no end of a word.
    ("E\u0301te\u0301s chauds", "E\u0301te\u0301s|chauds"),
    ("foo\u200bbar x\u00ady", "foo\u200bbar|x\u00ady"),
    # White space other than the blank ends words too.
    ("a\u00a0b\u3000c\td", "a|b|c|d"),
    ("שלום עולם!", "שלום|עולם|!"),
]


@pytest.mark.parametrize("text, expected", BY_HAND)
def test_words_of_running_text_by_hand(text: str, expected: str) -> None:
    offsets, units, _ = words_in_a_graph(as_tensor([text]))
    assert cuts(offsets, units, [text]) == [expected.split("|") if expected else []]


def test_rows_do_not_influence_each_other() -> None:
    texts = [text for text, _ in BY_HAND]
    offsets, units, _ = words_in_a_graph(as_tensor(texts))
    expected = [words.split("|") if words else [] for _, words in BY_HAND]
    assert cuts(offsets, units, texts) == expected
    backwards = texts[::-1]
    offsets, units, _ = words_in_a_graph(as_tensor(backwards))
    assert cuts(offsets, units, backwards) == expected[::-1]


def test_a_vocabulary_without_apostrophes() -> None:
    offsets = small_pipelines.TOKENIZER.tokenize_with_offsets(as_tensor(["a's a"]))
    units = text_words(offsets, small_pipelines.VOCABULARY)
    # The apostrophe is [UNK], which is no mark.
    assert cuts(offsets, units, ["a's a"]) == [["a's", "a"]]


def test_each_ideograph_is_a_word() -> None:
    vocabulary = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "##b", *"我在北京。", "##京"])
    text = "ab我在北京。a 龍京a"
    offsets = WordPiece(vocabulary).tokenize_with_offsets(as_tensor([text]))
    units = text_words(offsets, vocabulary)
    assert cuts(offsets, units, [text]) == [[*"ab 我 在 北 京 。 a 龍 京 a".split()]]
    whole = WordPiece(vocabulary, handle_cjk=False)  # 京 goes on with the word that 北 begins
    offsets = whole.tokenize_with_offsets(as_tensor(["北京 我"]))
    assert cuts(offsets, text_words(offsets, vocabulary), ["北京 我"]) == [["北京", "我"]]


def test_every_token_is_a_word() -> None:
    offsets = TOKENIZER.tokenize_with_offsets(as_tensor(["ab c!", "", "d"]))
    units = every_token(offsets)
    assert units.first.to_list() == units.last.to_list() == [[0, 1, 2, 3], [], [0]]


letters = st.text(st.sampled_from("abs .,'’@#-\u0301\u200b\u00a0\t中é\n\0"), max_size=25)
rows = st.lists(st.one_of(letters, st.text(max_size=15)), max_size=4)


@given(rows)
def test_words_are_runs_of_tokens(texts: list[str]) -> None:
    """No token is left out, none is in two words, and no word begins inside one of BERT's."""
    offsets, units, _ = words_in_a_graph(as_tensor(texts))
    assert units.first.nrows() == units.last.nrows() == len(texts)
    for row in range(len(texts)):
        ids = offsets.token_ids[row].numpy()
        assert sum(runs(units, row), []) == list(range(len(ids)))
        for run in runs(units, row):
            assert run and not VOCABULARY.tokens[ids[run[0]]].startswith("##")


def expected_spaced(text: str, starts: list[int]) -> tuple[list[list[int]], list[int]]:
    """Tokens by word, and the number of each word that has any, by counting blanks."""
    words: dict[int, list[int]] = {}
    for token, start in enumerate(starts):
        words.setdefault(text[:start].count(" "), []).append(token)
    return list(words.values()), list(words)


@given(rows)
def test_spaced_words_are_those_of_split(texts: list[str]) -> None:
    offsets, _, (units, number) = words_in_a_graph(as_tensor(texts))
    for row, text in enumerate(texts):
        tokens, numbers = expected_spaced(text, offsets.start[row].numpy().tolist())
        assert runs(units, row) == tokens
        assert number[row].numpy().tolist() == numbers
        words = text.split(" ")
        for run, place in zip(tokens, numbers, strict=True):
            start, end = offsets.start[row][run[0]].numpy(), offsets.end[row][run[-1]].numpy()
            assert text[start:end] in words[place]


def test_spaced_words_by_hand() -> None:
    texts = ["U.K. \u200b  a", "", " b"]
    offsets = TOKENIZER.tokenize_with_offsets(as_tensor(texts))
    units, number = spaced_words(as_tensor(texts), offsets)
    # "U.K.", a character of no width, nothing between two blanks, "a".
    assert cuts(offsets, units, texts) == [["U.K.", "a"], [], ["b"]]
    assert number.to_list() == [[0, 3], [], [1]]


def test_broken_bytes() -> None:
    texts = [b"a\xff \xffb\xc3 c", b"\xff"]
    offsets, units, (spaced, number) = words_in_a_graph(as_tensor(texts))
    assert units.first.to_list() == spaced.first.to_list() == [[0, 1, 2], []]
    assert number.to_list() == [[0, 1, 2], []]


@pytest.mark.parametrize("texts", [[], [""], ["", " "]])
@pytest.mark.parametrize("in_graph", [False, True])
def test_no_words(texts: list[str], in_graph: bool) -> None:
    text = as_tensor(texts)
    if in_graph:
        _, units, (spaced, number) = words_in_a_graph(text)
    else:
        offsets = TOKENIZER.tokenize_with_offsets(text)
        units = text_words(offsets, VOCABULARY)
        spaced, number = spaced_words(text, offsets)
    for column in (*units, *spaced, number):
        assert column.to_list() == [[]] * len(texts)

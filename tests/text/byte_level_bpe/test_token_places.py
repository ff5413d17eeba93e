"""Offsets of tokens by hand, with tokens of one's own choice."""

import tensorflow as tf

from kbert.text.byte_level_bpe.segments import segments_of, whole_texts
from kbert.text.byte_level_bpe.token_places import TokenPlaces
from tests.text.byte_level_bpe_cases import vocabulary_of

VOCABULARY = vocabulary_of([("Ġ", "a"), ("Ġ", "Ġ"), ("Ċ", "Ġ"), ("a", "a"), ("Ġ", "Ã")])


def ids_of(rows: list[str]) -> tf.RaggedTensor:
    ids = [[VOCABULARY.id_of(token) for token in row.split()] for row in rows]
    return tf.ragged.constant(ids, tf.int32, row_splits_dtype=tf.int64)


def places(texts: list[str], tokens: list[str], trim: bool, prefixed: bool) -> list:
    finder = TokenPlaces(VOCABULARY, trim, prefixed)
    given = tf.constant(texts)
    added = [prefixed and text[:1] not in ("", " ") for text in texts]
    found = finder.find(given, whole_texts(given), ids_of(tokens), tf.constant(added))
    return [
        list(zip(*(one.to_list()[row] for one in found[1:]), strict=True))
        for row in range(len(texts))
    ]


def test_places_by_hand() -> None:
    """(first byte, byte after the last, first character, character after the last)."""
    found = places(["é a", "", "aa a"], ["Ã © Ġa", "", "aa Ġa"], False, False)
    assert found == [
        [(0, 2, 0, 1), (0, 2, 0, 1), (2, 4, 1, 3)],
        [],
        [(0, 2, 0, 2), (2, 4, 2, 4)],
    ]


def test_spaces_are_trimmed_at_both_ends() -> None:
    found = places(["  é\n a", "aa  "], ["Ġ ĠÃ © ĊĠ a", "aa ĠĠ"], True, False)
    assert found == [
        [(1, 1, 1, 1), (2, 4, 2, 3), (2, 4, 2, 3), (4, 5, 3, 4), (6, 7, 5, 6)],
        [(0, 2, 0, 2), (4, 4, 4, 4)],
    ]


def test_an_added_space_has_the_place_of_the_first_character() -> None:
    found = places(["é", "a", " a", "\n"], ["Ġ Ã ©", "Ġa", "Ġa", "Ġ Ċ"], False, True)
    assert found == [[(0, 2, 0, 1)] * 3, [(0, 1, 0, 1)], [(0, 2, 0, 2)], [(0, 1, 0, 1)] * 2]
    trimmed = places(["é", "a", " a"], ["ĠÃ ©", "Ġa", "Ġa"], True, True)
    assert trimmed == [[(0, 2, 0, 1)] * 2, [(0, 1, 0, 1)], [(0, 2, 0, 2)]]


def test_special_tokens_have_the_place_of_their_names() -> None:
    text = tf.constant(["é  <mask>a"])
    segments = segments_of(text, VOCABULARY)
    tokens = ids_of(["Ã ©", "<mask>", "a"])
    for trim, start in ((True, 3), (False, 1)):
        finder = TokenPlaces(VOCABULARY, trim, False)
        found = finder.find(text, segments, tokens, tf.constant([False] * 3))
        assert found.start.to_list() == [[0, 0, start, 9]]
        assert found.start_byte.to_list() == [[0, 0, start + 1, 10]]
        assert found.end.to_list() == [[1, 1, 9, 10]]

import numpy as np
import pytest

from kbert.text.vocabulary import Vocabulary
from kbert.text.wordpiece.code_point_table import (
    UNKNOWN_LETTER,
    CodePointTable,
    build_table,
    special_markers,
)
from kbert.text.wordpiece.normalization import NormalizationRules

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
UNKNOWN = chr(UNKNOWN_LETTER)


def looked_up(table: CodePointTable, letter: str) -> str:
    point = ord(letter)
    entry = table.entries[table.page_starts[point >> 7] + (point & 127)]
    return "".join(map(chr, table.values[table.splits[entry] : table.splits[entry + 1]]))


@pytest.fixture(scope="module")
def table() -> CodePointTable:
    vocabulary = Vocabulary((*SPECIAL, "e", "##e", "中", ".", "\u1100", "##\u1161", "\u2e52"))
    return build_table(vocabulary, NormalizationRules(True, True, True), True)


def test_known_letters_stand_for_themselves(table: CodePointTable) -> None:
    assert looked_up(table, "e") == looked_up(table, "É") == "e"
    assert looked_up(table, "中") == " 中 "
    assert looked_up(table, ".") == " . "
    assert looked_up(table, "가") == "\u1100\u1161"


def test_unknown_letters_are_one_letter(table: CodePointTable) -> None:
    assert looked_up(table, "x") == looked_up(table, "ж") == UNKNOWN
    assert looked_up(table, "国") == looked_up(table, "。") == f" {UNKNOWN} "
    assert looked_up(table, "각") == f"\u1100\u1161{UNKNOWN}"


def test_spaces_and_dropped(table: CodePointTable) -> None:
    assert looked_up(table, "\t") == looked_up(table, "\u3000") == " "
    for letter in ("\0", "\x01", "\u0301", "\u200b", "\ufffd", UNKNOWN):
        assert looked_up(table, letter) == ""


def test_letters_that_the_splitter_would_isolate_are_renamed(table: CodePointTable) -> None:
    """U+2E52 is punctuation since Unicode 14.0, and a letter in the reference."""
    assert len(looked_up(table, "\u2e52")) == 1
    assert looked_up(table, "\u2e52") not in ("\u2e52", UNKNOWN)
    assert table.model_tokens[11] == looked_up(table, "\u2e52")


def test_marks_carry_their_combining_class(table: CodePointTable) -> None:
    """U+302E has class 224 and stays when accents are stripped (category Mc)."""
    code = ord(looked_up(table, "\u302e"))
    assert table.ordering_classes[code - UNKNOWN_LETTER] == 224
    assert np.count_nonzero(table.ordering_classes[:1]) == 0


def test_markers_are_as_long_as_their_tokens(table: CodePointTable) -> None:
    vocabulary = Vocabulary((*SPECIAL, "a"))
    markers = special_markers(vocabulary)
    assert set(markers) == set(SPECIAL)
    assert all(len(marker) == len(token) for token, marker in markers.items())
    spelled = "".join(looked_up(table, letter) for letter in markers["[MASK]"])
    assert spelled.strip() == table.model_tokens[4]
    without = build_table(vocabulary, NormalizationRules(True, True, True), False)
    assert all(looked_up(without, letter) == "" for letter in markers["[MASK]"])


def test_tokens_that_no_text_spells_get_names_of_their_own() -> None:
    tokens = ("a-b", "a b", "##-", "##", "A", "a")
    table = build_table(Vocabulary((*SPECIAL, *tokens)), NormalizationRules(True, True, True), True)
    assert table.model_tokens[-2:] == ["A", "a"]  # "A" cannot be reached, and does no harm
    assert len(set(table.model_tokens)) == len(table.model_tokens)
    assert not {"a-b", "a b", "##-", "##"} & set(table.model_tokens)
    assert table.unknown_token == table.model_tokens[1]


def test_table_is_small() -> None:
    table = build_table(Vocabulary((*SPECIAL, "a")), NormalizationRules(True, True, True), False)
    arrays = (table.page_starts, table.entries, table.splits, table.values, table.ordering_classes)
    assert sum(array.nbytes for array in arrays) < 400_000

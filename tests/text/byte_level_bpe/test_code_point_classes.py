"""Classes of code points: some by hand, and all beside the published tokenizer's."""

import numpy as np
import pytest

from kbert.text.byte_level_bpe.code_point_classes import (
    LETTER,
    NUMBER,
    OTHER,
    PAGE_BITS,
    PAGE_SIZE,
    WHITE,
    class_table,
    code_point_classes,
)


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ("aZéßΣж日ªʰ", LETTER),
        ("09²½٣Ⅻ〇", NUMBER),
        (" \t\n\x0b\x0c\r\x85\xa0\u1680\u2000\u2028\u3000", WHITE),
        ("_'-.\x00\x1c\u0301\u200b\u180e\ufeff😀€\ufffd", OTHER),  # U+180E was a space once
        ("\U00010d4a\U00011bc0", LETTER),  # of Unicode 16.0
        ("\U00010d40\U000116d0", NUMBER),  # of Unicode 16.0
    ],
)
def test_classes_by_hand(points: str, expected: int) -> None:
    assert set(code_point_classes()[list(map(ord, points))].tolist()) == {expected}


def test_table_has_the_class_of_every_code_point() -> None:
    table, points = class_table(), np.arange(0x110000)
    found = table.entries[table.page_starts[points >> PAGE_BITS] + (points & (PAGE_SIZE - 1))]
    assert (found == code_point_classes()).all()
    assert len(table.entries) < 0x110000 / 30


def hold_to_published(first: int, end: int) -> None:
    """A character that continues a word of letters, numbers or marks is of that class."""
    pre_tokenizers = pytest.importorskip("tokenizers").pre_tokenizers
    splitter = pre_tokenizers.ByteLevel(add_prefix_space=False)
    points = np.array([point for point in range(first, end) if not 0xD800 <= point < 0xE000])
    expected = np.full(0x110000, WHITE)
    for before, number in (("!a", LETTER), ("!1", NUMBER), ("a!", OTHER)):
        text = "".join(f"{before}{chr(point)}" for point in points.tolist())
        begins = {begin for _, (begin, _) in splitter.pre_tokenize_str(text)}
        goes_on = np.array([3 * index + 2 not in begins for index in range(len(points))])
        expected[points[goes_on]] = number
    assert (code_point_classes() == expected)[points].all()


def test_scripts_as_published() -> None:
    """All but ideographs, syllables of Hangul, private use and what is not assigned."""
    hold_to_published(0, 0x3400)
    hold_to_published(0xA000, 0xAC00)
    hold_to_published(0xF900, 0x12000)


@pytest.mark.slow
def test_every_code_point_as_published() -> None:
    hold_to_published(0, 0x110000)

import unicodedata

import numpy as np
import pytest

from kbert.text.wordpiece import normalization as classes


def test_ranges_include_both_ends() -> None:
    assert classes.code_points("9-B D 1F600").tolist() == [9, 10, 11, 13, 0x1F600]
    member = classes.is_member("9-A 10FFFF")
    assert member.shape == (0x110000,)
    assert np.flatnonzero(member).tolist() == [9, 10, 0x10FFFF]


@pytest.mark.parametrize(
    ("ranges", "categories"),
    [
        (classes.DROPPED, ("Cc", "Cf", "Co")),
        (classes.NONSPACING_MARKS, ("Mn",)),
        (classes.PUNCTUATION, ("Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps")),
    ],
)
def test_classes_are_the_categories_of_unicode_8(ranges: str, categories: tuple[str, ...]) -> None:
    """Where Unicode 3.2 and Python's Unicode name the same category, so did 8.0 between them."""
    member = classes.is_member(ranges)
    old = unicodedata.ucd_3_2_0
    for point in range(0x80, 0x110000):
        letter = chr(point)
        category = old.category(letter)
        if category in ("Cn", "Cs") or category != unicodedata.category(letter):
            continue
        expected = category in categories or (point == 0xFFFD and "Cc" in categories)
        assert member[point] == expected, hex(point)


def test_ascii_is_sorted_by_hand() -> None:
    punctuation = classes.is_member(classes.PUNCTUATION)
    assert "".join(chr(c) for c in range(128) if punctuation[c]) == (
        "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
    )
    space = classes.is_member(classes.WHITE_SPACE)
    assert [c for c in range(256) if space[c]] == [9, 10, 13, 32, 0xA0]
    dropped = classes.is_member(classes.DROPPED)
    assert [c for c in range(256) if not dropped[c] and (c < 32 or 127 <= c < 160)] == [9, 10, 13]


def test_no_code_point_is_in_two_classes() -> None:
    named = (
        classes.WHITE_SPACE,
        classes.DROPPED,
        classes.NONSPACING_MARKS,
        classes.PUNCTUATION,
        classes.IDEOGRAPHS,
    )
    assert np.sum([classes.is_member(ranges) for ranges in named], axis=0).max() == 1

import itertools

import pytest

from kbert.text.wordpiece.normalization import (
    NormalizationRules,
    canonical_decompositions,
    lowercase_letters,
)

UNCASED = NormalizationRules(lowercase=True, strip_accents=True, handle_cjk=True)


def test_replacements_by_hand() -> None:
    found = UNCASED.replacements()
    assert found[ord("É")] == (ord("e"),)
    assert found[0x130] == (ord("i"),)  # I with a dot: i, and the dot is a mark
    assert found[0x212B] == (ord("a"),)  # the angstrom sign is an A with a ring
    assert found[0x3A3] == (0x3C3,)  # sigma, final or not
    assert found[0xAC01] == (0x1100, 0x1161, 0x11A8)  # a Hangul syllable is three letters
    assert found[0xFA30] == (0x4FAE,)  # a compatibility ideograph
    assert found[0x37E] == (ord(";"),)  # the Greek question mark
    assert ord("ß") not in found and ord("e") not in found and 0x301 not in found


def test_accents_may_stay() -> None:
    found = NormalizationRules(True, False, True).replacements()
    assert found[ord("É")] == (ord("é"),)
    assert found[0x130] == (ord("i"), 0x307)
    assert not NormalizationRules(False, False, True).replacements()


def test_younger_unicode_is_left_out_and_in() -> None:
    assert 0x11938 not in canonical_decompositions()  # Unicode 13.0; the reference has 9.0
    assert canonical_decompositions()[0x1E9B] == (0x17F, 0x307)
    assert lowercase_letters()[0x1C89] == (0x1C8A,)  # Unicode 16.0; Python 3.11 has 14.0
    assert lowercase_letters()[0xA7DC] == (0x19B,)
    assert UNCASED.ordering_classes()[0x302E] == 224
    assert not NormalizationRules(True, False, True).ordering_classes()


def test_classes_follow_the_switches() -> None:
    assert UNCASED.dropped()[0x301] and not NormalizationRules(False, False, True).dropped()[0x301]
    assert UNCASED.padded()[0x4E00] and not NormalizationRules(True, True, False).padded()[0x4E00]
    assert UNCASED.isolated()[0x4E00] and UNCASED.isolated()[ord("!")]
    assert UNCASED.white_space()[0x3000]


# Lower case, no accents, Chinese characters apart: as the published models have them come first.
PUBLISHED = [(True, True, True), (False, False, True)]


@pytest.mark.parametrize(
    "switches",
    [
        pytest.param(switches, marks=[pytest.mark.slow] * (switches not in PUBLISHED))
        for switches in itertools.product([True, False], repeat=3)
    ],
)
def test_every_code_point_as_the_reference(switches: tuple[bool, bool, bool]) -> None:
    """Hugging Face tokenizers' normalizer on each of 1,112,064 code points between two letters."""
    normalizers = pytest.importorskip("tokenizers").normalizers
    rules = NormalizationRules(*switches)
    lowercase, strip_accents, handle_cjk = switches
    reference = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=handle_cjk,
        strip_accents=strip_accents,
        lowercase=lowercase,
    )
    points = [point for point in range(0x110000) if not 0xD800 <= point < 0xE000]
    dropped, white_space, padded = rules.dropped(), rules.white_space(), rules.padded()
    replacements = rules.replacements()

    def expected(point: int) -> str:
        if dropped[point]:
            return ""
        if white_space[point]:
            return " "
        text = "".join(map(chr, replacements.get(point, (point,))))
        return f" {text} " if padded[point] else text

    for begin in range(0, len(points), 1 << 16):
        some = points[begin : begin + (1 << 16)]
        given = "".join(f"a{chr(point)}b" for point in some)
        wanted = "".join(f"a{expected(point)}b" for point in some)
        if reference.normalize_str(given) != wanted:
            wrong = [
                hex(point)
                for point in some
                if reference.normalize_str(f"a{chr(point)}b") != f"a{expected(point)}b"
            ]
            pytest.fail(f"other than the reference: {wrong[:20]}")

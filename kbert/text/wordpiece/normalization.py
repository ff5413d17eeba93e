"""Normalization of single code points by BERT's reference, before words are matched.

Every step of the reference maps a code point to zero or more code points, independent of its
neighbours: clean (drop controls, white space to a space), put spaces around ideographs, decompose
canonically (NFD) and drop the marks, lower-case. That is the order of Hugging Face `tokenizers`
0.23; google-research/bert lower-cases first, with the same result for every code point. Only one
step depends on neighbours: NFD sorts runs of marks by their combining class (`ordering_classes`).
"""

import dataclasses
import functools
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

import numpy as np

NUM_CODE_POINTS = 0x110000
# The reference (`BertNormalizer`, `BertPreTokenizer`) takes general categories from a table of
# Unicode 8.0, so a mark or a punctuation sign that Unicode got later counts as a letter. Python's
# `unicodedata` changes with Python (3.11 has 14.0, 3.12 has 15.0): taken from there, the ids of a
# text would depend on the interpreter. So the ranges are listed here, as compared with the
# reference on every code point, which `tests/text/wordpiece/test_normalization.py` repeats.

# White_Space, less the control characters among them that are dropped (U+000B, U+000C, U+0085).
WHITE_SPACE = "9-A D 20 A0 1680 2000-200A 2028-2029 202F 205F 3000"

# Categories Cc (but tab, line feed and carriage return), Cf and Co, and U+FFFD.
DROPPED = """
    0-8 B-C E-1F 7F-9F AD 600-605 61C 6DD 70F 180E 200B-200F 202A-202E 2060-2064 2066-206F
    E000-F8FF FEFF FFF9-FFFB FFFD 110BD 1BCA0-1BCA3 1D173-1D17A E0001 E0020-E007F F0000-FFFFD
    100000-10FFFD
"""

# Category Mn: what stripping accents drops after the canonical decomposition.
NONSPACING_MARKS = """
    300-36F 483-487 591-5BD 5BF 5C1-5C2 5C4-5C5 5C7 610-61A 64B-65F 670 6D6-6DC 6DF-6E4 6E7-6E8
    6EA-6ED 711 730-74A 7A6-7B0 7EB-7F3 816-819 81B-823 825-827 829-82D 859-85B 8E3-902 93A 93C
    941-948 94D 951-957 962-963 981 9BC 9C1-9C4 9CD 9E2-9E3 A01-A02 A3C A41-A42 A47-A48 A4B-A4D
    A51 A70-A71 A75 A81-A82 ABC AC1-AC5 AC7-AC8 ACD AE2-AE3 B01 B3C B3F B41-B44 B4D B56 B62-B63
    B82 BC0 BCD C00 C3E-C40 C46-C48 C4A-C4D C55-C56 C62-C63 C81 CBC CBF CC6 CCC-CCD CE2-CE3 D01
    D41-D44 D4D D62-D63 DCA DD2-DD4 DD6 E31 E34-E3A E47-E4E EB1 EB4-EB9 EBB-EBC EC8-ECD F18-F19
    F35 F37 F39 F71-F7E F80-F84 F86-F87 F8D-F97 F99-FBC FC6 102D-1030 1032-1037 1039-103A
    103D-103E 1058-1059 105E-1060 1071-1074 1082 1085-1086 108D 109D 135D-135F 1712-1714 1732-1734
    1752-1753 1772-1773 17B4-17B5 17B7-17BD 17C6 17C9-17D3 17DD 180B-180D 18A9 1920-1922 1927-1928
    1932 1939-193B 1A17-1A18 1A1B 1A56 1A58-1A5E 1A60 1A62 1A65-1A6C 1A73-1A7C 1A7F 1AB0-1ABD
    1B00-1B03 1B34 1B36-1B3A 1B3C 1B42 1B6B-1B73 1B80-1B81 1BA2-1BA5 1BA8-1BA9 1BAB-1BAD 1BE6
    1BE8-1BE9 1BED 1BEF-1BF1 1C2C-1C33 1C36-1C37 1CD0-1CD2 1CD4-1CE0 1CE2-1CE8 1CED 1CF4 1CF8-1CF9
    1DC0-1DF5 1DFC-1DFF 20D0-20DC 20E1 20E5-20F0 2CEF-2CF1 2D7F 2DE0-2DFF 302A-302D 3099-309A A66F
    A674-A67D A69E-A69F A6F0-A6F1 A802 A806 A80B A825-A826 A8C4 A8E0-A8F1 A926-A92D A947-A951
    A980-A982 A9B3 A9B6-A9B9 A9BC A9E5 AA29-AA2E AA31-AA32 AA35-AA36 AA43 AA4C AA7C AAB0 AAB2-AAB4
    AAB7-AAB8 AABE-AABF AAC1 AAEC-AAED AAF6 ABE5 ABE8 ABED FB1E FE00-FE0F FE20-FE2F 101FD 102E0
    10376-1037A 10A01-10A03 10A05-10A06 10A0C-10A0F 10A38-10A3A 10A3F 10AE5-10AE6 11001
    11038-11046 1107F-11081 110B3-110B6 110B9-110BA 11100-11102 11127-1112B 1112D-11134 11173
    11180-11181 111B6-111BE 111CA-111CC 1122F-11231 11234 11236-11237 112DF 112E3-112EA
    11300-11301 1133C 11340 11366-1136C 11370-11374 114B3-114B8 114BA 114BF-114C0 114C2-114C3
    115B2-115B5 115BC-115BD 115BF-115C0 115DC-115DD 11633-1163A 1163D 1163F-11640 116AB 116AD
    116B0-116B5 116B7 1171D-1171F 11722-11725 11727-1172B 16AF0-16AF4 16B30-16B36 16F8F-16F92
    1BC9D-1BC9E 1D167-1D169 1D17B-1D182 1D185-1D18B 1D1AA-1D1AD 1D242-1D244 1DA00-1DA36
    1DA3B-1DA6C 1DA75 1DA84 1DA9B-1DA9F 1DAA1-1DAAF 1E8D0-1E8D6 E0100-E01EF
"""

# Categories Pc, Pd, Pe, Pf, Pi, Po, Ps, and the ASCII symbols, which BERT counts as punctuation.
PUNCTUATION = """
    21-2F 3A-40 5B-60 7B-7E
    A1 A7 AB B6-B7 BB BF 37E 387 55A-55F 589-58A 5BE 5C0 5C3 5C6 5F3-5F4 609-60A 60C-60D 61B
    61E-61F 66A-66D 6D4 700-70D 7F7-7F9 830-83E 85E 964-965 970 AF0 DF4 E4F E5A-E5B F04-F12 F14
    F3A-F3D F85 FD0-FD4 FD9-FDA 104A-104F 10FB 1360-1368 1400 166D-166E 169B-169C 16EB-16ED
    1735-1736 17D4-17D6 17D8-17DA 1800-180A 1944-1945 1A1E-1A1F 1AA0-1AA6 1AA8-1AAD 1B5A-1B60
    1BFC-1BFF 1C3B-1C3F 1C7E-1C7F 1CC0-1CC7 1CD3 2010-2027 2030-2043 2045-2051 2053-205E 207D-207E
    208D-208E 2308-230B 2329-232A 2768-2775 27C5-27C6 27E6-27EF 2983-2998 29D8-29DB 29FC-29FD
    2CF9-2CFC 2CFE-2CFF 2D70 2E00-2E2E 2E30-2E42 3001-3003 3008-3011 3014-301F 3030 303D 30A0 30FB
    A4FE-A4FF A60D-A60F A673 A67E A6F2-A6F7 A874-A877 A8CE-A8CF A8F8-A8FA A8FC A92E-A92F A95F
    A9C1-A9CD A9DE-A9DF AA5C-AA5F AADE-AADF AAF0-AAF1 ABEB FD3E-FD3F FE10-FE19 FE30-FE52 FE54-FE61
    FE63 FE68 FE6A-FE6B FF01-FF03 FF05-FF0A FF0C-FF0F FF1A-FF1B FF1F-FF20 FF3B-FF3D FF3F FF5B FF5D
    FF5F-FF65 10100-10102 1039F 103D0 1056F 10857 1091F 1093F 10A50-10A58 10A7F 10AF0-10AF6
    10B39-10B3F 10B99-10B9C 11047-1104D 110BB-110BC 110BE-110C1 11140-11143 11174-11175
    111C5-111C9 111CD 111DB 111DD-111DF 11238-1123D 112A9 114C6 115C1-115D7 11641-11643
    1173C-1173E 12470-12474 16A6E-16A6F 16AF5 16B37-16B3B 16B44 1BC9F 1DA87-1DA8B
"""

# What the reference calls Chinese characters. google-research/bert begins the last but one block at
# 2B820; the reference begins at 2B920.
IDEOGRAPHS = "3400-4DBF 4E00-9FFF F900-FAFF 20000-2A6DF 2A700-2B81F 2B920-2CEAF 2F800-2FA1F"

SPACE = 0x20
# Nothing above decomposes or has case.
_LAST_WITH_CASE_OR_DECOMPOSITION = 0x2FFFF
# Decompositions that are younger than the reference's table (Unicode 9.0): 13.0 and 16.0.
_YOUNGER_DECOMPOSITIONS = (
    "11938 105C9 105E4 11383 11385 1138E 11391 113C5 113C7-113C8 16121-16128 16D68-16D6A"
)
# Lower case that is older than the reference's table (Unicode 17.0) and younger than Python 3.11's
# (14.0): upper-case ranges, step, distance to the lower-case letter.
_YOUNGER_LOWERCASE = (
    ("1C89", 1),
    ("A7CB", 0x264 - 0xA7CB),
    ("A7CC A7CE A7D2 A7D4 A7DA", 1),
    ("A7DC", 0x19B - 0xA7DC),
    ("10D50-10D65", 0x20),
    ("16EA0-16EB8", 0x1B),
)
# Marks that stripping keeps (category Mc, or younger than Unicode 8.0) and NFD may put in order.
_ORDERED_MARKS = (
    "8D4-8E1 1B44 1BAA 1BF2-1BF3 1DFB 302E-302F A953 A9C0 111C0 11235 1134D 11442 11446 116B6 "
    "11C3F 1D165-1D166 1D16D-1D172 1E000-1E006 1E008-1E018 1E01B-1E021 1E023-1E024 1E026-1E02A "
    "1E944-1E94A"
)


def code_points(ranges: str) -> np.ndarray:
    """Parses code points such as "9-A D 20": hexadecimal numbers and inclusive ranges."""
    pairs = (item.partition("-") for item in ranges.split())
    bounds = ((int(first, 16), int(last or first, 16)) for first, _, last in pairs)
    return np.concatenate([np.arange(low, high + 1, dtype=np.int32) for low, high in bounds])


def is_member(ranges: str) -> np.ndarray:
    """Returns the membership of every code point, bool (1114112,)."""
    member = np.zeros(NUM_CODE_POINTS, dtype=bool)
    member[code_points(ranges)] = True
    return member


@dataclasses.dataclass(frozen=True)
class NormalizationRules:
    """The switches of the reference's normalizer, and their effect on each code point."""

    # Whether letters are lower-cased, one code point at a time (so a final capital sigma becomes
    # U+03C3, not U+03C2).
    lowercase: bool
    strip_accents: bool  # Whether text is decomposed (NFD) and category Mn dropped
    handle_cjk: bool  # Whether each ideograph is a word of its own

    def dropped(self) -> np.ndarray:
        """Returns which code points are dropped, bool (1114112,)."""
        return is_member(f"{DROPPED} {NONSPACING_MARKS}" if self.strip_accents else DROPPED)

    def white_space(self) -> np.ndarray:
        """Returns which code points become a space, bool (1114112,)."""
        return is_member(WHITE_SPACE)

    def padded(self) -> np.ndarray:
        """Returns which code points get spaces around their replacement, bool (1114112,)."""
        return is_member(IDEOGRAPHS) & self.handle_cjk

    def isolated(self) -> np.ndarray:
        """Returns which code points of normalized text are separate words, bool (1114112,)."""
        return is_member(PUNCTUATION) | self.padded()

    @functools.lru_cache(maxsize=8)  # of all switches: each tokenizer that is made asks for them
    def replacements(self) -> Mapping[int, tuple[int, ...]]:
        """Returns the replacements of code points that are neither dropped nor unchanged, in order.

        White space and the spaces around ideographs are not listed here.
        """
        changed: dict[int, tuple[int, ...]] = {}
        marks = frozenset(code_points(NONSPACING_MARKS).tolist())
        decompositions = canonical_decompositions() if self.strip_accents else {}
        lower = lowercase_letters() if self.lowercase else {}
        for point in decompositions.keys() | lower.keys():
            parts = [part for part in decompositions.get(point, (point,)) if part not in marks]
            changed[point] = tuple(low for part in parts for low in lower.get(part, (part,)))
        for point in np.flatnonzero(self.dropped() | self.white_space()).tolist():
            changed.pop(point, None)
        return MappingProxyType(dict(sorted(changed.items())))

    def ordering_classes(self) -> dict[int, int]:
        """Returns canonical combining classes of code points that NFD sorts and stripping keeps.

        Source: Unicode Standard Annex 15, canonical ordering algorithm.
        """
        if not self.strip_accents:
            return {}
        marks = code_points(_ORDERED_MARKS).tolist()
        return {mark: unicodedata.combining(chr(mark)) for mark in marks}


@functools.lru_cache(maxsize=1)
def canonical_decompositions() -> dict[int, tuple[int, ...]]:
    """Returns code point -> its full canonical decomposition, if it has one in the reference.

    Decompositions never change once they are assigned (Unicode stability policy), so only those
    younger than the reference's table must be left out.
    """
    younger = frozenset(code_points(_YOUNGER_DECOMPOSITIONS).tolist())
    decomposed = functools.partial(unicodedata.normalize, "NFD")
    return {
        point: tuple(map(ord, decomposed(chr(point))))
        for point in _changed_by(decomposed)
        if point not in younger
    }


@functools.lru_cache(maxsize=1)
def lowercase_letters() -> dict[int, tuple[int, ...]]:
    """Returns code point -> its lower case, if that differs; only U+0130 becomes two."""
    found = {point: tuple(map(ord, chr(point).lower())) for point in _changed_by(str.lower)}
    for ranges, distance in _YOUNGER_LOWERCASE:
        found.update((point, (point + distance,)) for point in code_points(ranges).tolist())
    return found


def _changed_by(change: Callable[[str], str]) -> Iterator[int]:
    """Yields the code points that become something else, in order.

    Pages of which none does, as most are, are looked at as a whole.
    """
    for start in range(0, _LAST_WITH_CASE_OR_DECOMPOSITION + 1, 256):
        page = "".join(map(chr, range(start, start + 256)))
        if change(page) != page:
            yield from (ord(letter) for letter in page if change(letter) != letter)

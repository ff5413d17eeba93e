"""Sentence splitting: rules on plain text, for pretraining and similar uses.

The base is Unicode Standard Annex 29, section 5 (Sentence Boundary Rules): a full stop, with the
quotes and brackets that close after it, ends a sentence, unless a lower-case letter follows (SB8).
The terminators of other scripts are those of the property Sentence_Terminal (PropList.txt of the
Unicode Character Database). It is tailored for written prose:

- a full stop of the Latin kind needs white space after it ("3.14", "kbert.text", "Hello!World");
- a lower-case letter also continues a sentence after "!" and "?" ('"Boh!" cried the voice');
- abbreviations, initials, enumerators and ordinals do not end one. Which abbreviations may be the
  last word of a sentence, and that a frequent first word marks that, is from Kiss and Strunk 2006,
  "Unsupervised Multilingual Sentence Boundary Detection", Computational Linguistics 32(4).

Languages without full stops, such as Thai, are not split.
"""

import re
from collections.abc import Iterator

# Marks that need white space after them to end a sentence.
_STOPS = ".!?\u2026\u203c\u203d\u2047-\u2049"
# Marks that need none: Armenian, Arabic, Syriac, Devanagari, Burmese, Ethiopic, Khmer, Mongolian,
# Chinese and Japanese (with the full-width and half-width forms), and others of Sentence_Terminal.
_OTHER_STOPS = (
    "\u0589\u061d-\u061f\u06d4\u0700-\u0702\u07f9\u0964\u0965\u104a\u104b\u1362\u1367\u1368\u166e"
    "\u1735\u1736\u17d4\u17d5\u1803\u1809\u1944\u1945\u1c3b\u1c3c\u1c7e\u1c7f\u2e2e\u3002\ufe52"
    "\ufe56\ufe57\uff01\uff0e\uff1f\uff61"
)
_CLOSING = "\"'\u2019\u201d\u00bb\u203a)\\]}\u300d\u300f\u3011\u3009\u300b\uff09\uff3d\uff63"
_OPENING = (
    "\"'`([{\u2018\u201c\u201e\u201a\u00ab\u2039\u00bf\u00a1\u300c\u300e\u3010\uff08*_-\u2013\u2014"
)
_GOES_ON = ",;:)]}\u00bb\u2019\u201d\u203a"  # SContinue, and what should have closed before
# Possessive quantifiers: no backtracking, so that the time is linear in any text.
_END = re.compile(
    rf"(?<![{_STOPS}])(?P<stops>[{_STOPS}]++)[{_CLOSING}]*+\s++"
    rf"|[{_OTHER_STOPS}]++[{_STOPS}{_OTHER_STOPS}]*+[{_CLOSING}]*+\s*+"
)
_MARK = re.compile(f"[{_STOPS}{_OTHER_STOPS}]")  # how all of these begin
_NEAR = 64  # characters that are examined around a full stop
_ACRONYM = re.compile(r"(?:\w\.)+\w")
_ENUMERATOR = re.compile(r"[(\[]?(?:\d{1,3}(?:\.\d{1,3})*|[ivxlcIVXLC]{1,6}|\w)")
_ORDINAL = re.compile(r"\d{1,2}")

# Never the last word of a sentence. Words that are also ordinary words are in none of these.
_NEVER_LAST = frozenset("""
    adm brig capt cmdr col comdr cpl dr drs fr gen gov hon insp lieut lt maj messrs mlle mlles mme
    mmes mr mrs ms mt pres prof profs rep rev rt sen sens sgt ste supt bspw bzgl bzw dipl evtl frl
    ggf hl hr hrn inkl insb sog tel vgl zzgl dott dra sig sigra sra srta exmo e.g i.e viz cf vs resp
    approx ibid
""".split())
# The last word of a sentence only where a frequent first word follows.
_SELDOM_LAST = frozenset("""
    al assn ave bart bldg blvd bros ca co corp dept dist ed edn eds eqs esq etc ext ft hwy inc jr
    ltd mm nos org ph.d pp repr sr st str suppl trans univ vol vols jan feb mar apr jun jul aug sep
    sept oct nov dec tue tues thu thurs fri ariz calif colo conn fla kan ky md mich minn mont neb
    nev okla penn tenn va vt wis wyo abb abs aufl ausg bd bde beisp betr bsp entspr geb jh jhd kap
    mio mrd nr spez u.a usf usw verf z.b z.t d.h env fasc janv fevr juil m\u00e9m n\u00b0
    r\u00e9f trad
""".split())
# An abbreviation where a number follows.
_NUMBERED = frozenset("""
    art bd ch chap eq eqs fig figs kap no nos nr op p par pp s sec sect v vol vols
""".split())
_FIRST_WORDS = frozenset("""
    A After All Also Although An And As At Because Before But By During Each Even First For From Had
    He Her Here His How However I If In It Its Many More Most My No Not Now Of On One Only Other Our
    She Since So Some Such That The Their Then There These They This Those Though Thus To Under
    Until Upon Was We Were What When Where Which While Who Why With Yet You Your Aber Als Am An Auch
    Auf Aus Bei Da Damit Dann Das Der Die Diese Dieser Doch Ein Eine Er Es F\u00fcr Hier Ich Im In
    Man Mit Nach Nicht Nun Nur Ob Sie So Und Unter Von Vor Wenn Wer Wie Wir Zu Zum Apr\u00e8s Au
    Avec Ce Cela Ces Cette Dans De Des Elle En Et Il Ils Je La Le Les Mais Nous On Par Pour Quand
    Sans Si Son Sur Un Une Vous
""".split())
_MONTHS = frozenset("""
    Januar Jänner Februar März April Mai Juni Juli August September Oktober November Dezember
""".split())
_WORD = re.compile(r"\w+")


def split_sentences(text: str) -> list[str]:
    r"""Splits a text into its sentences, in order and without surrounding white space.

    A line end ("\n") always ends a sentence. None is empty, and only white space is left out.
    """
    sentences: list[str] = []
    for line in text.split("\n"):
        begin = 0
        for found in _marks(line):
            stop, end = found.start(), found.end()
            if end < len(line) and not _ends(line, begin, stop, end, found["stops"]):
                continue
            sentences.append(line[begin:end].strip())
            begin = end
        sentences.append(line[begin:].strip())
    return [sentence for sentence in sentences if sentence]


def _marks(line: str) -> Iterator[re.Match[str]]:
    """Yields what `_END.finditer` would, in half the time."""
    mark = _MARK.search(line)
    while mark is not None:
        found = _END.match(line, mark.start())
        if found is not None:
            yield found
        mark = _MARK.search(line, mark.end() if found is None else found.end())


def _ends(line: str, begin: int, stop: int, end: int, stops: str | None) -> bool:
    """Returns whether a sentence ends at a mark that is not the last of its line.

    The sentence begins at `begin` and the mark at `stop`, and the next sentence would begin at
    `end`; `stops` are the marks that depend on their context, or None.
    """
    if stops is None:
        return True
    following = line[end]
    if following in _OPENING:
        following = line[end : end + _NEAR].lstrip(f"{_OPENING} ")[:1]
    if following.islower() or (following and following in _GOES_ON):
        return False
    if stops != "." or line[stop + 1] in _CLOSING:
        return True
    return not _is_abbreviation(line, begin, stop, end)


def _is_abbreviation(line: str, begin: int, stop: int, end: int) -> bool:
    """Returns whether the single full stop at `stop` belongs to the word before it."""
    before = line[max(begin, stop - _NEAR) : stop].split()
    word = before[-1].lstrip(_OPENING) if before else ""
    if len(before) == 1 and _ENUMERATOR.fullmatch(word):
        return True
    if len(word) == 1 and word.isalpha():
        return word != "I"  # an initial
    lowered = word.lower().rpartition("-")[2]
    following = found[0] if (found := _WORD.match(line, end)) else ""
    if lowered in _NEVER_LAST or (lowered in _NUMBERED and following[:1].isdigit()):
        return True
    if lowered in _SELDOM_LAST or _ACRONYM.fullmatch(word):
        return following not in _FIRST_WORDS
    return bool(_ORDINAL.fullmatch(word)) and following in _MONTHS


# A text may be wrapped if its long lines have about the same length, within these bounds.
_NARROWEST, _WIDEST = 40, 100
_LONG = 0.9  # the quantile of the lines' lengths that is taken as the page width
_FULL = 0.8  # of that width: a line that exceeds it with the next line's first word was broken
_MOST = 0.5  # the share of broken lines from which a text counts as wrapped
_FEW = 8  # lines, below which shares are not meaningful
_FINISHED = re.compile(r"[.!?:][\"'\u2019\u201d\u00bb)\]]*$")


def joined_lines(text: str) -> str:
    r"""Joins the lines of a wrapped text, such as those of Project Gutenberg and e-mails.

    Lines are broken greedily: a line was broken if the first word of the next one did not fit into
    the page width. If at least half of the lines look so, those that do are joined with the next,
    unless that is indented. Blank lines stay, and so does a text with one sentence or paragraph per
    line.
    """
    lines = [line.rstrip() for line in text.split("\n")]
    lengths = sorted(len(line) for line in lines if line)
    if len(lengths) < 2:
        return text
    is_short = len(lengths) < _FEW
    width = lengths[-1] if is_short else lengths[int(_LONG * len(lengths))]
    if not _NARROWEST <= width <= _WIDEST:
        return text
    least = width if is_short else _FULL * width
    joins = [_joins(line, following, least) for line, following in zip(lines, lines[1:])]
    pairs = sum(bool(line and following) for line, following in zip(lines, lines[1:]))
    broken = sum(joins)
    if is_short and (broken < pairs or all(_FINISHED.search(line) for line in lines[:-1])):
        return text
    if broken < _MOST * max(pairs, 1):
        return text
    ends = [" " if join else "\n" for join in joins]
    return "".join(part for pair in zip(lines, (*ends, "")) for part in pair)


def _joins(line: str, following: str, least: float) -> bool:
    """Returns whether a line was broken because it was full."""
    if not line or not following or following[0].isspace():
        return False
    return len(line) + 1 + len(following.split(None, 1)[0]) > least

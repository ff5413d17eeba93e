"""Lines that were broken to fit a page, put together again."""

import re

# A text may be wrapped where its long lines have about one length, within these bounds.
_NARROWEST, _WIDEST = 40, 100
_LONG = 0.9  # the quantile of the lines' lengths that tells the width of a page
_FULL = 0.8  # of that width, a line with the first word of the next: it was broken there
_MOST = 0.5  # the share of broken lines that makes a text a wrapped one
_FEW = 8  # lines of a text that are too few for shares
_FINISHED = re.compile(r"[.!?:][\"'\u2019\u201d\u00bb)\]]*$")


def joined_lines(text: str) -> str:
    r"""Joins the lines of a wrapped text, as Project Gutenberg and e-mails have them.

    Lines are broken greedily: a line was broken where the first word of the next one had no room in
    the width of the page. Where half of the lines and more look so, those that do are joined with
    the next, unless that is indented. A text with a sentence or a paragraph a line stays as it is.

    Args:
        text: a document, or a part of one. Blank lines stay.

    Returns:
        The text with spaces in place of some line ends ("\n").
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
    """Whether a line was broken because its page was full."""
    if not line or not following or following[0].isspace():
        return False
    return len(line) + 1 + len(following.split(None, 1)[0]) > least

"""Joining of lines that were wrapped to fit a page."""

import re

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
    unless that is indented. A text with one sentence or paragraph per line stays as it is.

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
    """Returns whether a line was broken because it was full."""
    if not line or not following or following[0].isspace():
        return False
    return len(line) + 1 + len(following.split(None, 1)[0]) > least

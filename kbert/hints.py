"""Hints at the end of error messages."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns " Did you mean `x`?" for the name in `known` closest to `name`, or ""."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f" Did you mean `{by_lower[close[0]]}`?" if close else ""

"""Hints at the end of error messages."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns " Did you mean `x`?" for the name in `known` closest to `name`, or ""."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f" Did you mean `{by_lower[close[0]]}`?" if close else ""


def nearest_options(given: str, known: Iterable[str]) -> list[str]:
    """Returns the long options that one which is not known may stand for, as `--lr`, `--epoch`.

    Those with its initials come before those that begin with it, and these before similar ones.
    """
    letters = given.lstrip("-").lower().replace("_", "-")
    words = {option: option.lstrip("-") for option in known}
    initials = {option: "".join(w[0] for w in name.split("-")) for option, name in words.items()}
    return (
        [option for option in words if initials[option] == letters]
        or [option for option, name in words.items() if name.startswith(letters)]
        or difflib.get_close_matches(f"--{letters}", words)
    )

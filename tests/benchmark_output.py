"""Reads in the output of a benchmark why it, or one of its contenders, was not run."""

import re

# A benchmark that lacks one of these is broken: no extra brings them.
OWN = {"kbert", "side_by_side", "contenders", "peers", "tests"}
_MISSING = re.compile(r"No module named '?(\w+)")
_NOT_RUN = re.compile(r"^(.+) was not run: (.*)$", re.MULTILINE)
# Ends of errors that ask for packages of an extra.
_ASKED = ("pip install", "must be installed")


def lacks_a_package(error: str) -> bool:
    """True where an error comes of a package that is in an extra, or that only peers need."""
    missing = set(_MISSING.findall(error))
    return missing.isdisjoint(OWN) if missing else any(words in error for words in _ASKED)


def broken_contenders(output: str) -> list[str]:
    """The contenders that were not run though they could be, each with the reason.

    All of kbert's are that can import what they need; a peer, whose environment is its own, is
    only if it lacks a part of the benchmarks.
    """
    return [
        f"{name}: {reason}"
        for name, reason in _NOT_RUN.findall(output)
        if not lacks_a_package(reason) and (name.startswith("kbert") or _MISSING.search(reason))
    ]

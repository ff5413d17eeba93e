"""Results of a verb: JSON on stdout, and reports for people on stderr."""

import json
import os
import re
import sys
from collections.abc import Iterable
from typing import Any

from typer import echo

_NUMBER = r"(?:-?\d[\d.eE+-]*|null)"
_NUMBERS = re.compile(rf"\[\n\s*({_NUMBER}(?:,\n\s*{_NUMBER})*)\n\s*\]")


def write_result(value: Any) -> None:
    """Writes a verb's result to stdout as indented JSON; a list of numbers stays on one line."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    # A JSON string has no raw line break, so each match is a list.
    echo(_NUMBERS.sub(lambda found: f"[{' '.join(found[1].split())}]", text))


def write_report(lines: Iterable[str], value: Any) -> None:
    """Writes a report for people to stderr, and to stdout as JSON, unless people read that too."""
    echo("\n".join(lines), err=True)
    if not (sys.stdout.isatty() or _is_one_stream()):
        write_result(value)


def _is_one_stream() -> bool:
    """Returns whether stdout and stderr go into the same file or pipe, as after `2>&1`."""
    try:
        return os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except (OSError, ValueError):  # not files of the system
        return False


def write_line(value: Any) -> None:
    """Writes one line of JSON Lines to stdout, without flushing."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n")

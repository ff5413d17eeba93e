"""Results on stdout: JSON only."""

import json
import re
import sys
from typing import Any

_NUMBER = r"(?:-?\d[\d.eE+-]*|null)"
_NUMBERS = re.compile(rf"\[\n\s*({_NUMBER}(?:,\n\s*{_NUMBER})*)\n\s*\]")


def write_result(value: Any) -> None:
    """Writes a verb's result to stdout, indented; a list of numbers stays on one line.

    Args:
        value: A value of JSON types.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    # A JSON string has no raw line break, so each match is a list.
    text = _NUMBERS.sub(lambda found: f"[{' '.join(found[1].split())}]", text)
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def write_line(value: Any) -> None:
    """Writes one line of JSON Lines to stdout, without flushing.

    Args:
        value: A value of JSON types.
    """
    sys.stdout.write(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n")

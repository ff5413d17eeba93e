"""Results on stdout: JSON, and nothing else."""

import json
import sys
from typing import Any


def write_result(value: Any) -> None:
    """Writes a verb's result to stdout, indented.

    Args:
        value: What JSON can hold.
    """
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    sys.stdout.flush()


def write_line(value: Any) -> None:
    """Writes one line of JSON Lines to stdout, without flushing.

    Args:
        value: What JSON can hold.
    """
    sys.stdout.write(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n")

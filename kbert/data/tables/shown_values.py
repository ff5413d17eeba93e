"""How messages show a value that came instead of what was expected."""

from typing import Any

_LONGEST = 80


def shortened(value: Any) -> str:
    """Returns a JSON value as a message shows it, cut where it is long; "nothing" for None.

    Args:
        value: any value.
    """
    if value is None:
        return "nothing"
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."

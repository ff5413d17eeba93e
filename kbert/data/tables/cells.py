"""Values of cells: their form in messages, and lone surrogates in them.

These are halves of a pair that JSON can escape ("\\ud800") and UTF-8 cannot encode.

A tokenizer sees three broken bytes where Python counts one code point, so every offset behind a
lone surrogate would be wrong. Labelled data with offsets are therefore read without them.

Source: the Unicode Standard, section 3.9, D92 (UTF-8 holds no surrogates); RFC 8259, section 8.2.
"""

import re
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")


def without_surrogates(text: str, where: str, encoding_errors: str = "strict") -> str:
    """Returns a text that UTF-8 can hold.

    Args:
        text: any string.
        where: file, line or path, and name of the value, for the message.
        encoding_errors: "strict", or "replace" to put U+FFFD for each lone surrogate; offsets in
            code points stay the same.

    Raises:
        ValueError: there is a lone surrogate, with "strict".
    """
    if text.isascii():
        return text
    found = _SURROGATE.search(text)
    if found is None:
        return text
    if encoding_errors == "replace":
        return _SURROGATE.sub("\ufffd", text)
    raise ValueError(
        f"{where}: the value must be text that UTF-8 can hold. Received: a lone surrogate "
        f"{found.group()!r} at code point {found.start()}. Correct the escape, or pass "
        "encoding_errors='replace'."
    )


_LONGEST = 80


def shortened(value: Any) -> str:
    """Returns a JSON value for a message, cut where it is long; "nothing" for None.

    Args:
        value: any value.
    """
    if value is None:
        return "nothing"
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."

"""Values of a configuration that do not go with each other: the words of the errors."""

import dataclasses
from collections.abc import Iterable
from typing import Any


def wrong(key: str, expected: str, value: Any) -> ValueError:
    """The error for a value that does not go with the others."""
    return ValueError(f"`{key}` must be {expected}. Received: {key}={value!r}")


def check_default(config: Any, keys: Iterable[str], where: str) -> None:
    """Checks that some keys were left at their defaults.

    Args:
        config: A configuration.
        keys: The keys.
        where: When they say nothing, as "without validation".

    Raises:
        ValueError: One of them was given.
    """
    defaults = {field.name: field.default for field in dataclasses.fields(config)}
    for key in keys:
        value = getattr(config, key)
        if value != defaults[key]:
            raise wrong(key, f"left out {where}", value)

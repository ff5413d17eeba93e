"""How many examples a test of random ones has, where each takes long."""

from typing import Any

from hypothesis import settings


def few_examples(count: int, thorough: int | None = None, **others: Any) -> settings:
    """Settings of a test that has `count` examples under the profile "fast" of tests/conftest.py.

    Under others it has `thorough` of them, or as many as the profile asks for.
    """
    if settings.get_current_profile_name() == "fast":
        return settings(max_examples=count, **others)
    return settings(**others) if thorough is None else settings(max_examples=thorough, **others)

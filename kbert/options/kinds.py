"""Kinds of values of a run's configuration, each with the text of its error message."""

import math
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, dataclass, field
from typing import Any

from kbert.data.tables.table import nearest
from kbert.options.yaml_file import parse_yaml


@dataclass(frozen=True)
class Kind:
    """A kind of value.

    Attributes:
        expected: Description of valid values, for the error message.
        accepts: Returns whether a value is of this kind.
        python_type: Type of the command-line option: `str`, `int`, `float` or `bool`.
        from_text: Turns such a `str` into a value.
        optional: Whether None is valid too.
        names: The values where they are names; the error message suggests the nearest one.
    """

    expected: str
    accepts: Callable[[Any], bool]
    python_type: type = str
    optional: bool = False
    from_text: Callable[[str], Any] = str
    names: tuple[str, ...] = ()

    def check(self, key: str, value: Any) -> None:
        """Raises a ValueError that names key, expectation and value if `value` is not of this kind.

        Args:
            key: The key, for the message.
            value: The value.
        """
        if (value is None and self.optional) or (value is not None and self.accepts(value)):
            return
        expected = f"{self.expected}, or nothing" if self.optional else self.expected
        near = nearest(value, self.names) if isinstance(value, str) else ""
        stop = "." if near else ""
        raise ValueError(f"`{key}` must be {expected}. Received: {key}={value!r}{stop}{near}")


def text(expected: str = "text") -> Kind:
    """Returns the kind of a string that is not empty, or None.

    Args:
        expected: Description of the text, for the error message.
    """
    return Kind(expected, lambda v: isinstance(v, str) and v.strip() != "", str, optional=True)


def column() -> Kind:
    """Returns the kind of a column's name or 0-based index, or None."""
    return Kind(
        "a column's name or its index, from 0",
        lambda v: (isinstance(v, str) and v != "") or (_is_whole(v) and v >= 0),
        optional=True,
        from_text=lambda v: int(v) if v.isdecimal() else v,
    )


def choice(*names: str) -> Kind:
    """Returns the kind of one of some names.

    Args:
        *names: The names.
    """
    return Kind(
        f"one of {', '.join(names)}", lambda v: isinstance(v, str) and v in names, names=names
    )


def flag() -> Kind:
    """Returns the kind of True or False."""
    return Kind("true or false", lambda v: isinstance(v, bool), bool)


def whole(minimum: int, optional: bool = False) -> Kind:
    """Returns the kind of an integer.

    Args:
        minimum: The smallest valid value.
        optional: Whether None is valid too.
    """
    return Kind(
        f"a whole number, at least {minimum}",
        lambda v: _is_whole(v) and v >= minimum,
        int,
        optional,
    )


def number(expected: str, accepts: Callable[[float], bool], optional: bool = False) -> Kind:
    """Returns the kind of a finite number.

    Args:
        expected: Its bounds in words.
        accepts: Returns whether a finite number is within them.
        optional: Whether None is valid too.
    """
    return Kind(expected, lambda v: _is_number(v) and accepts(v), float, optional)


def names() -> Kind:
    """Returns the kind of a list of two or more different names, or None."""
    return Kind(
        "a list of two different names or more",
        lambda v: isinstance(v, list)
        and all(isinstance(name, str) and name != "" for name in v)
        and len(set(v)) == len(v) > 1,
        optional=True,
        from_text=lambda v: [name.strip() for name in v.split(",")],
    )


def patterns() -> Kind:
    """Returns the kind of a list of files or glob patterns, or None."""
    return Kind(
        "a list of files or patterns of their names",
        lambda v: isinstance(v, list)
        and v != []
        and all(isinstance(name, str) and name.strip() != "" for name in v),
        optional=True,
        from_text=lambda v: [name.strip() for name in v.split(",")],
    )


def weights() -> Kind:
    """Returns the kind of `none`, `balanced`, or a positive number for each label."""
    return Kind(
        "none, balanced, or {label: weight} with weights above 0",
        lambda v: v in ("none", "balanced")
        if isinstance(v, str)
        else isinstance(v, dict)
        and v != {}
        and all(isinstance(name, str) for name in v)
        and all(_is_number(weight) and weight > 0 for weight in v.values()),
        from_text=lambda v: parse_yaml(v, "`class_weights`"),
    )


def grid(keys: Sequence[str]) -> Kind:
    """Returns the kind of True, False, or a list of values for some keys.

    Args:
        keys: The keys that a grid may vary.
    """
    return Kind(
        f"true, false, or a list of values for each of some of {', '.join(keys)}",
        lambda v: isinstance(v, bool)
        or isinstance(v, dict)
        and v != {}
        and set(v) <= set(keys)
        and all(isinstance(values, list) and values for values in v.values()),
        bool,
    )


def option(default: Any, kind: Kind, panel: str, help: str) -> Any:
    """Returns a field of a configuration.

    Args:
        default: Its default; must not be a dict or list.
        kind: The kind of its values.
        panel: The heading of its group in the help text.
        help: One line of help text.
    """
    return field(default=default, metadata={"kind": kind, "panel": panel, "help": help})


def kind_of(described: "Field[Any]") -> Kind:
    """Returns the kind of a field that `option` made.

    Args:
        described: The field.

    Raises:
        ValueError: The field was not made by `option`.
    """
    kind = described.metadata.get("kind")
    if not isinstance(kind, Kind) or described.default is MISSING:
        raise ValueError(f"`described` must be made by `option`. Received: {described.name!r}")
    return kind


def _is_whole(value: Any) -> bool:
    # bool is a subclass of int in Python, but not a number.
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return (_is_whole(value) or isinstance(value, float)) and math.isfinite(value)

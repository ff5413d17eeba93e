"""Kinds of values of a configuration, and their text in YAML, without the surprises of YAML 1.1.

In these files `5e-5` is a number, `no` and `on` are text, and a duplicate key is an error. Source
of the forms of numbers and booleans: YAML 1.2.2, section 10.3.2 (the core schema).
"""

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kbert.hints import nearest

_FLOAT = re.compile(
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
_WHOLE = re.compile(r"[-+]?[0-9]+")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_NULL = re.compile(r"~|null|Null|NULL|")


class _Loader(yaml.SafeLoader):
    """Reads plain scalars by the core schema of YAML 1.2."""

    # A dict of its own, so that PyYAML's other loaders do not change.
    yaml_implicit_resolvers: dict[Any, Any] = {}

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """Builds a mapping; a duplicate key is an error."""
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, (list, dict)):
                continue  # the base class refuses it
            if key in seen:
                at = key_node.start_mark.line + 1
                raise yaml.YAMLError(f"line {at}: the key `{key}` is there twice")
            seen.add(key)
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    """Quotes a string that this reader, or one of YAML 1.1, would parse as another type."""


def _construct_int(loader: _Loader, node: Any) -> int:
    return int(loader.construct_scalar(node))  # by the core schema 010 is ten, not eight


for _tag, _pattern in (("bool", _BOOL), ("int", _WHOLE), ("float", _FLOAT), ("null", _NULL)):
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(
            f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern.pattern})$"), None
        )
_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)


def parse_yaml(text: str, source: str) -> Any:
    """Parses a text; raises a ValueError that names `source` if it is not YAML."""
    try:
        return yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{source} must be YAML. Received: {reason}") from error


def read_config_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads the keys and values of a YAML file in UTF-8; an empty file has no keys.

    Raises a ValueError if the file is not UTF-8, not YAML, or not a mapping with string keys.
    """
    file = Path(path)
    try:
        content = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} must be UTF-8. Received: {error}") from error
    values = parse_yaml(content, str(file))
    if values is None:
        return {}
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise ValueError(
            f"{file} must hold one `key: value` a line. Received: {type(values).__name__} "
            f"{str(values)[:80]!r}"
        )
    return values


def config_text(values: Mapping[str, Any]) -> str:
    """Returns the text that `read_config_file` reads back."""
    return yaml.dump(dict(values), Dumper=_Dumper, sort_keys=False, allow_unicode=True)


@dataclass(frozen=True)
class Kind:
    """A kind of value.

    Attributes:
        expected: Description of valid values, for the error message.
        accepts: Returns whether a value other than None is of this kind.
        python_type: What the help says of the command-line option: `str`, `int`, `float` or `bool`,
            of which the last is a flag.
        optional: Whether None is valid too.
        from_text: Turns a `str` of the command line into a value.
        names: The values where they are names; the error message suggests the nearest one.
    """

    expected: str
    accepts: Callable[[Any], bool]
    python_type: type = str
    optional: bool = False
    from_text: Callable[[str], Any] = str
    names: tuple[str, ...] = ()

    def check(self, key: str, value: Any) -> None:
        """Raises a ValueError that names key, expectation and value if `value` is not valid."""
        if (value is None and self.optional) or (value is not None and self.accepts(value)):
            return
        near = nearest(value, self.names) if isinstance(value, str) else ""
        stop = "." if near else ""
        raise ValueError(f"`{key}` must be {self.expected}. Received: {key}={value!r}{stop}{near}")


def text(expected: str = "text") -> Kind:
    """Returns the kind of a string that is not empty, or None."""
    return Kind(expected, lambda v: isinstance(v, str) and v.strip() != "", str, optional=True)


def column() -> Kind:
    """Returns the kind of a column's name or 0-based index, or None."""
    return Kind(
        "a column's name or its index, from 0",
        lambda v: (isinstance(v, str) and v != "") or (type(v) is int and v >= 0),
        optional=True,
        from_text=lambda v: int(v) if v.isdecimal() else v,
    )


def choice(*names: str, optional: bool = False) -> Kind:
    """Returns the kind of one of some names."""
    expected = f"one of {', '.join(names)}"
    return Kind(expected, lambda v: isinstance(v, str) and v in names, str, optional, names=names)


def flag() -> Kind:
    """Returns the kind of True or False."""
    return Kind("true or false", lambda v: isinstance(v, bool), bool)


def _read_as(number: type[int] | type[float]) -> Callable[[str], Any]:
    """Returns the reader of a number, which leaves what is none for `Kind.check`."""

    def read(value: str) -> Any:
        try:
            return number(value)
        except ValueError:
            return value

    return read


def whole(minimum: int, optional: bool = False) -> Kind:
    """Returns the kind of an integer."""
    # bool is a subclass of int in Python, but not a number.
    expected = f"a whole number, at least {minimum}"
    return Kind(
        expected, lambda v: type(v) is int and v >= minimum, int, optional, _read_as(int)
    )


def number(expected: str, accepts: Callable[[float], bool], optional: bool = False) -> Kind:
    """Returns the kind of a finite number within bounds, given in words and as a function."""
    return Kind(expected, lambda v: is_number(v) and accepts(v), float, optional, _read_as(float))


def rate(optional: bool = False) -> Kind:
    """Returns the kind of a share below 1, such as a dropout rate."""
    return number("a number in [0, 1)", lambda v: 0 <= v < 1, optional)


def names() -> Kind:
    """Returns the kind of a list of two or more different names, or None."""
    expected = "a list of two different names or more"
    return _strings(expected, lambda v: "" not in v and len(set(v)) == len(v) > 1)


def patterns() -> Kind:
    """Returns the kind of a list of files or glob patterns, or None."""
    expected = "a list of files or patterns of their names"
    return _strings(expected, lambda v: v != [] and all(name.strip() for name in v))


def _strings(expected: str, accepts: Callable[[list[str]], bool]) -> Kind:
    return Kind(
        expected,
        lambda v: isinstance(v, list) and all(isinstance(s, str) for s in v) and accepts(v),
        optional=True,
        from_text=lambda v: [name.strip() for name in v.split(",")],
    )


def weights() -> Kind:
    """Returns the kind of `none`, `balanced`, or a positive number for each label."""
    return Kind(
        "none, balanced, or {label: weight} with weights above 0 (quote labels that are numbers)",
        lambda v: v in ("none", "balanced")
        if isinstance(v, str)
        else isinstance(v, dict)
        and v != {}
        and all(isinstance(name, str) and is_number(one) and one > 0 for name, one in v.items()),
        from_text=lambda v: _with_names(parse_yaml(v, "`class_weights`")),
    )


def thresholds() -> Kind:
    """Returns the kind of a number between 0 and 1, or one for each of some labels."""

    def is_inside(value: Any) -> bool:
        return is_number(value) and 0 < value < 1

    return Kind(
        "a number in (0, 1), or {label: number} (quote labels that are numbers)",
        lambda v: is_inside(v)
        or isinstance(v, dict)
        and v != {}
        and all(isinstance(name, str) and is_inside(one) for name, one in v.items()),
        from_text=lambda v: _with_names(parse_yaml(v, "`threshold`")),
    )


def _with_names(value: Any) -> Any:
    """Returns a mapping in which keys that are numbers, true or false are the labels of a file."""
    named = value.items() if isinstance(value, dict) else ()
    return {str(key).lower() if isinstance(key, int) else key: one for key, one in named} or value


def separator() -> Kind:
    """Returns the kind of text that stands between others; a space is one too."""
    return Kind("text that stands between two labels", lambda v: isinstance(v, str) and v != "")


def grid(keys: Sequence[str]) -> Kind:
    """Returns the kind of True, False, or a list of values for some keys."""
    return Kind(
        f"true, false, or a list of numbers for each of some of {', '.join(keys)}",
        lambda v: isinstance(v, bool)
        or isinstance(v, dict)
        and v != {}
        and set(v) <= set(keys)
        and all(isinstance(one, list) and one and all(map(is_number, one)) for one in v.values()),
        bool,
    )


def entries(key: str) -> Kind:
    """Returns the kind of options by names, {name: {option: value}}, or None.

    On the command line they are YAML files, name=file,name=file; `key` is that of the option.
    """

    def read(given: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for entry in given.split(","):
            name, _, file = (part.strip() for part in entry.partition("="))
            if not Path(file).is_file() or name in found:
                raise ValueError(
                    f"`{key}` must be NAME=FILE,NAME=FILE, of different names and YAML files. "
                    f"Received: {entry.strip()!r}"
                )
            found[name] = read_config_file(file)
        return found

    return Kind(
        "{name: options}",
        lambda v: isinstance(v, dict) and all(isinstance(one, dict) for one in v.values()),
        optional=True,
        from_text=read,
    )


def option(default: Any, kind: Kind, panel: str, help: str) -> Any:
    """Returns a field of a configuration; `panel` is the heading of its group in the help text."""
    return field(default=default, metadata={"kind": kind, "panel": panel, "help": help})


def kind_of(described: "Field[Any]") -> Kind:
    """Returns the kind of a field; raises a ValueError if `option` did not make the field."""
    kind = described.metadata.get("kind")
    if not isinstance(kind, Kind) or described.default is MISSING:
        raise ValueError(f"`described` must be made by `option`. Received: {described.name!r}")
    return kind


def is_number(value: Any) -> bool:
    """Returns whether a value is a finite number, and not True or False."""
    return (type(value) is int or isinstance(value, float)) and math.isfinite(value)

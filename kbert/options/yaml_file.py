"""Reader and writer of a run's YAML configuration, without the surprises of YAML 1.1.

`5e-5` is a number, `no` and `on` are text, and a duplicate key is an error. Source of the forms
of of numbers and booleans: YAML 1.2.2, section 10.3.2 (the core schema).
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

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
                line = key_node.start_mark.line + 1
                raise yaml.YAMLError(f"line {line}: the key `{key}` is there twice")
            seen.add(key)
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    """Quotes a string that this reader, or one of YAML 1.1, would parse as another type."""


def _construct_int(loader: _Loader, node: Any) -> int:
    """Parses an integer of the core schema: 010 is ten, not eight."""
    return int(loader.construct_scalar(node), 10)


for _tag, _pattern in (("bool", _BOOL), ("int", _WHOLE), ("float", _FLOAT), ("null", _NULL)):
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(
            f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern.pattern})$"), None
        )
_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)


def parse_yaml(text: str, source: str) -> Any:
    """Parses a YAML text.

    Args:
        text: The text.
        source: Name of its source, for the error message.

    Raises:
        ValueError: It is not YAML.
    """
    try:
        return yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{source} must be YAML. Received: {reason}") from error


def read_config_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads the keys and values of a YAML file.

    Args:
        path: The file, UTF-8: one `key: value` a line. An empty file has no keys.

    Raises:
        ValueError: The file is not UTF-8, not YAML, or not a mapping with string keys.
        FileNotFoundError: There is no such file.
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
    """Returns the text that `read_config_file` reads back.

    Args:
        values: Keys and values.
    """
    return yaml.dump(dict(values), Dumper=_Dumper, sort_keys=False, allow_unicode=True)

"""Base class of the configurations of all kinds of runs: checked fields, YAML, dicts."""

import dataclasses
import os
from collections.abc import Iterable, Mapping
from typing import Any, Self

from kbert.data.tables.table import nearest
from kbert.options.kinds import kind_of
from kbert.options.yaml_file import read_config_file


@dataclasses.dataclass(frozen=True)
class Configuration:
    """Base class of frozen dataclasses with fields of `kbert.options.kinds.option`.

    Raises:
        ValueError: A value is of the wrong type or out of bounds, or two values contradict each
            other; the message names key, expectation and value.
    """

    def __post_init__(self) -> None:
        """Checks each value by itself, then the values against each other."""
        for field in self.options():
            kind_of(field).check(field.name, getattr(self, field.name))
        self.check_together()

    def check_together(self) -> None:
        """Checks the values against each other, after each has been checked by itself.

        Raises:
            ValueError: Two of them contradict each other, or one is missing.
        """

    @classmethod
    def options(cls) -> "list[dataclasses.Field[Any]]":
        """Returns the fields by panel; in each, those of the class itself before inherited ones."""
        every = dataclasses.fields(cls)
        own = [field for field in every if field.name in cls.__annotations__]
        fields = [*own, *(field for field in every if field not in own)]
        panels = list(dict.fromkeys(field.metadata.get("panel") for field in fields))
        return sorted(fields, key=lambda field: panels.index(field.metadata.get("panel")))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], source: str = "The configuration") -> Self:
        """Creates a configuration from keys and values.

        Args:
            values: The values that differ from the defaults.
            source: Name of their source, for the error message.

        Raises:
            ValueError: A key is unknown (the message names the nearest one), or a value is wrong.
        """
        known = [field.name for field in cls.options()]
        for key in values:
            if key not in known:
                near = nearest(key.replace("-", "_"), known)
                raise ValueError(
                    f"{source}: the key must be one of {', '.join(known)}. Received: {key!r}.{near}"
                )
        return cls(**values)

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str], **overrides: Any) -> Self:
        """Creates a configuration from a YAML file.

        Args:
            path: The file.
            **overrides: Values that override the file's.

        Raises:
            ValueError: A key is unknown, a value is wrong, or the file is not a YAML mapping.
            FileNotFoundError: There is no such file.
        """
        return cls.from_dict({**read_config_file(path), **overrides}, os.fspath(path))

    def to_dict(self) -> dict[str, Any]:
        """Returns all keys and values, for `from_dict`."""
        values = dataclasses.asdict(self)
        return {field.name: values[field.name] for field in self.options()}

    def with_values(self, **values: Any) -> Self:
        """Returns a copy of the configuration with some values changed.

        Args:
            **values: The values that change.
        """
        return type(self).from_dict({**self.to_dict(), **values})


def wrong(key: str, expected: str, value: Any) -> ValueError:
    """Returns the error for a value of a configuration that contradicts the others.

    Args:
        key: The key.
        expected: Description of valid values.
        value: The value.
    """
    return ValueError(f"`{key}` must be {expected}. Received: {key}={value!r}")


def check_default(config: Any, keys: Iterable[str], where: str) -> None:
    """Checks that some keys have their default values.

    Args:
        config: A configuration.
        keys: The keys.
        where: The case in which they have no effect, such as "without validation".

    Raises:
        ValueError: One of them was given.
    """
    defaults = {field.name: field.default for field in dataclasses.fields(config)}
    for key in keys:
        value = getattr(config, key)
        if value != defaults[key]:
            raise wrong(key, f"left out {where}", value)

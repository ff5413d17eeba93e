"""Options that are made from a configuration, and the configuration that is made of them."""

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, Optional, TypeVar

from typer import Option

from kbert.cli.frame.command import completion
from kbert.options.configuration import Configuration
from kbert.options.kinds import kind_of, read_config_file

_Checked = TypeVar("_Checked", bound=Configuration)

ConfigFile = Annotated[
    Path | None,
    Option(
        help="YAML file with `key: value` for any option (with _ for -); options given on the "
        "command line go before it, --no-NAME before `NAME: true`."
    ),
]


def with_run_options(
    verb: Callable[..., None], configuration: type[Configuration]
) -> Callable[..., None]:
    """Adds to a verb with `**given` an option for each field, None if not given; in place."""
    own = inspect.signature(verb).parameters.values()
    kept = [parameter for parameter in own if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
    # The task is the positional argument of the verb.
    fields = [field for field in configuration.options() if field.name != "task"]
    every = [*kept, *map(_parameter, fields)]
    # A function has this attribute once it is set; `inspect`, and so typer, then reads it.
    verb.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
    verb.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
    return verb


def _parameter(field: "dataclasses.Field[Any]") -> inspect.Parameter:
    kind, name = kind_of(field), field.name.replace("_", "-")
    is_flag, is_number = kind.python_type is bool, kind.python_type in (int, float)
    option = Option(
        f"--{name}/--no-{name}" if is_flag else f"--{name}",
        # Its text, so that one that is no number is told in the words of the configuration.
        metavar=f"<{kind.python_type.__name__}>" if is_number else None,
        help=field.metadata["help"],
        rich_help_panel=field.metadata["panel"],
        show_default=shown_default(field) or False,
        autocompletion=completion(lambda: kind.names) if kind.names else None,
    )
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[Optional[bool if is_flag else str], option],
    )


def shown_default(field: "dataclasses.Field[Any]") -> str:
    """Returns the default of a field for help texts; "" for none."""
    if field.default is None or field.default is False:
        return ""
    return field.name.replace("_", "-") if field.default is True else str(field.default)


def given_values(given: dict[str, Any], configuration: type[Configuration]) -> dict[str, Any]:
    """Returns the values of the given options (None: not given) for a configuration."""
    values = {}
    for field in configuration.options():
        value = given.get(field.name)
        if value is not None:
            kind = kind_of(field)
            values[field.name] = value if kind.python_type is bool else kind.from_text(value)
    return values


def check_config_file(file: Path | None) -> None:
    """Raises a FileNotFoundError if the file of `--config` does not exist."""
    from kbert.training.run import check_file

    if file is not None:
        check_file("--config", file)


def checked_config(
    made: type[_Checked], file: Path | None, given: dict[str, Any], **values: Any
) -> _Checked:
    """Returns the configuration of given options and further values, and else of a file."""
    check_config_file(file)
    values = {**given_values(given, made), **values}
    _check_needed(made, values if file is None else {**read_config_file(file), **values})
    return made.from_dict(values) if file is None else made.from_yaml(file, **values)


def _check_needed(made: type[Configuration], values: dict[str, Any]) -> None:
    """Raises a ValueError that names all options that must be given and are not.

    Of values with an unknown key nothing is said: that may be one of them, misspelled. A value that
    is wrong by itself raises its own error.
    """
    fields = {field.name: field for field in made.options()}
    needed = [keys.split("|") for keys in made.needed]
    missing = [keys for keys in needed if all(values.get(key) is None for key in keys)]
    if not missing or not values.keys() <= fields.keys():
        return
    for key, value in values.items():
        kind_of(fields[key]).check(key, value)

    def named(keys: Iterable[str]) -> str:
        parts = ((key, kind_of(fields[key]).expected) for key in keys)
        return " or ".join(f"`--{key.replace('_', '-')}` ({expected})" for key, expected in parts)

    *others, last = map(named, missing)
    told = f"{', '.join(others)} and {last}" if others else last
    there = [key for keys in needed for key in keys if values.get(key) is not None]
    received = ", ".join(f"`--{key.replace('_', '-')}`" for key in there)
    raise ValueError(
        f"{told} must be given, here or in the file of `--config`. Received: "
        f"{received or 'none of them'}"
    )

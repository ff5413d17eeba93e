"""The options of a verb that trains, made from a configuration's fields, and back."""

import dataclasses
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Optional, TypeVar

import typer

from kbert.options.configuration import Configuration
from kbert.options.kinds import kind_of

Made = TypeVar("Made", bound=Configuration)
# The option that such a verb has besides.
ConfigFile = Annotated[
    Optional[Path],
    typer.Option(
        help="YAML file with `key: value` for any option (with _ for -); options given on the "
        "command line go before it."
    ),
]
# This field is the positional argument of the verb.
_ARGUMENT = "task"


def with_run_options(
    verb: Callable[..., None], configuration: type[Configuration]
) -> Callable[..., None]:
    """Adds to a verb one option for each field of a configuration, after its own parameters.

    An option that is not given is None, to be distinguished from a given one.

    Args:
        verb: A function with `**given`; it is changed in place.
        configuration: The class of the configuration.
    """
    own = inspect.signature(verb).parameters.values()
    kept = [parameter for parameter in own if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
    fields = [field for field in configuration.options() if field.name != _ARGUMENT]
    every = [*kept, *map(_parameter, fields)]
    # A function has this attribute once it is set; `inspect`, and so typer, then reads it.
    verb.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
    verb.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
    return verb


def given_values(
    given: dict[str, Any], configuration: type[Configuration]
) -> dict[str, Any]:
    """Returns the values of the given options, for a configuration.

    Args:
        given: Option -> value or None.
        configuration: The class of the configuration.

    Raises:
        ValueError: The text of an option is not a value of its kind.
    """
    values = {}
    for field in configuration.options():
        value = given.get(field.name)
        if value is not None:
            kind = kind_of(field)
            values[field.name] = kind.from_text(value) if kind.python_type is str else value
    return values


def check_config_file(config: Path | None) -> None:
    """Checks that the file of `--config` exists, if there is one.

    Raises:
        FileNotFoundError: It does not exist.
    """
    from kbert.training.first_look import check_file

    if config is not None:
        check_file("--config", config)


def configured(kind: type[Made], values: dict[str, Any], config: Path | None) -> Made:
    """Returns the configuration of the given values, which go before those of a file.

    Args:
        kind: Its class.
        values: From `given_values`.
        config: The file of `--config`, or None.

    Raises:
        ValueError: A value is wrong.
    """
    return kind.from_dict(values) if config is None else kind.from_yaml(config, **values)


def _parameter(field: "dataclasses.Field[Any]") -> inspect.Parameter:
    """Returns the typer parameter of a field."""
    kind, name = kind_of(field), field.name.replace("_", "-")
    option = typer.Option(
        f"--{name}/--no-{name}" if kind.python_type is bool else f"--{name}",
        help=field.metadata["help"],
        rich_help_panel=field.metadata["panel"],
        show_default=shown_default(field) or False,
    )
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[Optional[kind.python_type], option],
    )


def shown_default(field: "dataclasses.Field[Any]") -> str:
    """Returns the default of a field for help texts; "" for none.

    Args:
        field: A field of a configuration.
    """
    if field.default is None:
        return ""
    if isinstance(field.default, bool):
        return field.name.replace("_", "-") if field.default else ""
    return str(field.default)

"""The options of `kbert train`, made from a configuration's fields, which have the defaults."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Annotated, Any, Optional

import typer

from kbert.options.configuration import Configuration
from kbert.options.kinds import kind_of

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

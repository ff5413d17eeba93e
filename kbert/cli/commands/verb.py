"""The frame of a verb: options made from a configuration, results as JSON, errors as messages."""

import argparse
import copy
import dataclasses
import functools
import inspect
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, Optional, TypeVar

from typer import Abort, Exit, Option, echo
from typer.core import TyperCommand
from typer.models import OptionInfo

from kbert.hints import nearest_options
from kbert.options.configuration import Configuration
from kbert.options.kinds import kind_of, read_config_file
from kbert.tasks.registry import FINETUNED
from kbert.training.config.finetuning_config import options_of_others
from kbert.training.runs.stopped_runs import TrainingStopped

BAD_INPUT = 2
FAILURE = 1
STOPPED = 130  # 128 + SIGINT, like in shells
TRY_AGAIN = 75  # EX_TEMPFAIL of sysexits.h
PIPE_CLOSED = 141  # 128 + SIGPIPE
DEBUG = "KBERT_DEBUG"
# Errors that users can fix: values, files, folders. Everything else is a failure of the run.
_USERS = (ValueError, FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError)
_NUMBER = r"(?:-?\d[\d.eE+-]*|null)"
_NUMBERS = re.compile(rf"\[\n\s*({_NUMBER}(?:,\n\s*{_NUMBER})*)\n\s*\]")
_Command = TypeVar("_Command", bound=TyperCommand)
_Checked = TypeVar("_Checked", bound=Configuration)

ConfigFile = Annotated[
    Path | None,
    Option(
        help="YAML file with `key: value` for any option (with _ for -); options given on the "
        "command line go before it."
    ),
]


def reported(verb: Callable[..., None]) -> Callable[..., None]:
    """Wraps a verb so that its errors become one message and an exit code, without a traceback.

    Exit code 2 stands for bad input, 75 for a training that was asked to stop and can be resumed, 1
    for everything else. With `--debug` (or the variable KBERT_DEBUG) the traceback comes first.
    What was given as an option is named as one, `--epochs` for `epochs`.
    """

    @functools.wraps(verb)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            verb(*args, **kwargs)
        except (Exit, Abort):
            raise
        except BrokenPipeError as error:
            # The reader of stdout has closed it, like `head`; Python must not complain at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise Exit(PIPE_CLOSED) from error
        except TrainingStopped as error:
            echo(str(error), err=True)
            raise Exit(TRY_AGAIN) from error
        except KeyboardInterrupt as error:
            echo("Stopped.", err=True)
            raise Exit(STOPPED) from error
        except Exception as error:
            if os.environ.get(DEBUG):
                traceback.print_exc()
            options = _options(wrapped)
            if kwargs.get("config") is not None:  # what was not given may be a key of that file
                options = {name: options[name] for name in options if kwargs.get(name) is not None}
            echo(f"Error: {_with_options(_message(error), options)}", err=True)
            raise Exit(BAD_INPUT if isinstance(error, _USERS) else FAILURE) from error

    return wrapped


def _message(error: BaseException) -> str:
    """Returns the error's message, after its class where the message is not enough."""
    text = str(error).strip()
    if text and (isinstance(error, _USERS) or _is_own(error)):
        return text
    hint = "" if os.environ.get(DEBUG) else "  (kbert --debug shows where it happened)"
    return f"{type(error).__name__}: {text}{hint}"


def _options(verb: Callable[..., None]) -> dict[str, str]:
    """Returns the options of a verb by the names of its parameters."""
    found = {}
    for name, parameter in inspect.signature(verb).parameters.items():
        for made in getattr(parameter.annotation, "__metadata__", ()):
            if isinstance(made, OptionInfo):
                first = made.default  # where typer keeps the first of the declared names
                shown = first if isinstance(first, str) else f"--{name.replace('_', '-')}"
                found[name] = shown.partition("/")[0]
    return found


def _with_options(message: str, options: dict[str, str]) -> str:
    """Returns a message in which what "must" be something is named as the option that it is."""
    if not options:
        return message
    # Not where the same word is that of a column, as in "must have the columns `text`, `label`".
    names = re.compile(rf"`({'|'.join(options)})`(?=(?:(?:,| and| or) `\w+`)* must\b)")
    return names.sub(lambda found: f"`{options[found[1]]}`", message)


def _is_own(error: BaseException) -> bool:
    """Returns whether an error says in a sentence of kbert's own what is missing or taken.

    Those of Python and of the system have the name of a module, or a number.
    """
    if type(error).__module__.startswith("kbert."):
        return True
    if type(error) not in (ImportError, OSError):
        return False
    if getattr(error, "name", None) is not None or getattr(error, "errno", None) is not None:
        return False
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(frames) and str(frames[-1].f_globals.get("__name__")).startswith("kbert.")


def write_result(value: Any) -> None:
    """Writes a verb's result to stdout as indented JSON; a list of numbers stays on one line."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    # A JSON string has no raw line break, so each match is a list.
    echo(_NUMBERS.sub(lambda found: f"[{' '.join(found[1].split())}]", text))


def write_report(lines: Iterable[str], value: Any) -> None:
    """Writes a report for people to stderr, and to stdout as JSON, unless people read that too."""
    echo("\n".join(lines), err=True)
    if not (sys.stdout.isatty() or _is_one_stream()):
        write_result(value)


def _is_one_stream() -> bool:
    """Returns whether stdout and stderr go into the same file or pipe, as after `2>&1`."""
    try:
        return os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except (OSError, ValueError):  # not files of the system
        return False


def write_line(value: Any) -> None:
    """Writes one line of JSON Lines to stdout, without flushing."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n")


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


class VerbCommand(TyperCommand):
    """A command that names the options which an unknown one may stand for."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parses the arguments; see the base class."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            # Click's error, of whose class there are two: typer's newer versions hold their own.
            if hasattr(error, "possibilities"):
                every = [name for one in self.params for name in one.opts if name[:2] == "--"]
                error.possibilities = nearest_options(getattr(error, "option_name"), every)
            raise


def shipped_names(incomplete: str) -> list[str]:
    """Returns the names of models that come with kbert, for a shell's completion."""
    from kbert.checkpoints.pretrained import SHIPPED

    return [name for name in SHIPPED if name.startswith(incomplete)]


def with_fewer_options(command: _Command, args: list[str]) -> _Command:
    """Returns the command `kbert train`, for the help of one task without the options of others."""
    task = asked_task(args)
    if task not in FINETUNED or not {"-h", "--help"} & set(args):
        return command
    others = options_of_others(task)
    fewer = copy.copy(command)
    fewer.params = [one for one in command.params if one.name not in others]
    return fewer


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


def asked_task(args: list[str]) -> str | None:
    """Returns the task that arguments of `kbert train` name, as the first word or in a file."""
    if args and not args[0].startswith("-"):
        return args[0]
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--config", nargs="?")
    file = parser.parse_known_args(args)[0].config
    try:
        task = None if file is None else read_config_file(file).get("task")
    except (OSError, ValueError):
        return None  # the verb reads it again, and raises the error
    return task if isinstance(task, str) else None

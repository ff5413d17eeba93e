"""The command of a verb: hints, help and completion of its options and arguments."""

import argparse
import copy
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, TypeVar

from typer import Argument
from typer.core import TyperCommand

from kbert.hints import nearest_options
from kbert.options.kinds import read_config_file
from kbert.tasks.registry import FINETUNED
from kbert.training.config.finetuning_config import options_of_others

_Command = TypeVar("_Command", bound=TyperCommand)


def completion(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Returns a shell's completion of names, which are asked for when it is used."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def _shipped() -> Iterable[str]:
    from kbert.checkpoints.pretrained import SHIPPED  # with NumPy, which a help does without

    return SHIPPED


shipped_names = completion(_shipped)


RunArgument = Annotated[
    Path,
    Argument(
        help="A run, a model's folder, or a name.", metavar="RUN", autocompletion=shipped_names
    ),
]


class VerbCommand(TyperCommand):
    """A command that names the options which an unknown one may stand for.

    Its help leaves out --no-NAME where NAME is off without it: a terminal of 80 columns has no room
    for both.
    """

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Writes the help; see the base class."""
        shown = copy.copy(self)
        shown.params = [_shown(one) for one in self.params]
        super(VerbCommand, shown).format_help(ctx, formatter)

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


def _shown(option: Any) -> Any:
    """Returns an option as the help shows it."""
    if not option.secondary_opts or option.default or isinstance(option.show_default, str):
        return option
    shown = copy.copy(option)
    shown.secondary_opts = []
    return shown


def with_fewer_options(command: _Command, args: list[str]) -> _Command:
    """Returns the command `kbert train`, for the help of one task without the options of others."""
    task = asked_task(args)
    if task not in FINETUNED or not {"-h", "--help"} & set(args):
        return command
    others = options_of_others(task)
    fewer = copy.copy(command)
    fewer.params = [one for one in command.params if one.name not in others]
    return fewer


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

"""Dispatch of `kbert train`, which has other options for translation, by first word or file."""

from typing import Any

import typer
from typer.core import TyperCommand

from kbert.cli.commands.train import train_translation
from kbert.options.yaml_file import read_config_file
from kbert.training.config.translation_config import TASK

_CONFIG = "--config"


class TrainCommand(TyperCommand):
    """The command `kbert train`, which delegates to another command for translation."""

    def make_context(
        self, info_name: Any, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Parses the arguments, or lets `kbert train translation` parse them.

        Args:
            info_name: The verb.
            args: The arguments after it.
            parent: The program's context.
            **extra: Further arguments of typer's `make_context`.
        """
        if asks_for_translation(args):
            return _translation_command().make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


def asks_for_translation(args: list[str]) -> bool:
    """Returns whether arguments of `kbert train` are for translation.

    Args:
        args: The arguments.
    """
    if args and not args[0].startswith("-"):
        return args[0] == TASK
    file = _value_of(_CONFIG, args)
    if file is None:
        return False
    try:
        return bool(read_config_file(file).get("task") == TASK)
    except (OSError, ValueError):
        return False  # the verb reads it again, and raises the error


def _value_of(option: str, args: list[str]) -> str | None:
    for place, word in enumerate(args):
        if word == option and place + 1 < len(args):
            return args[place + 1]
        if word.startswith(f"{option}="):
            return word.removeprefix(f"{option}=")
    return None


def _translation_command() -> Any:
    # A typer app with a single command is that command.
    app = typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich"
    )
    app.command(context_settings={"help_option_names": ["-h", "--help"]})(train_translation)
    return typer.main.get_command(app)

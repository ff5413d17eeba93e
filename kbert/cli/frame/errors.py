"""Errors of a verb as one message and an exit code."""

import functools
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable
from typing import Any

from typer import Abort, Exit, echo
from typer.models import OptionInfo

from kbert.training.runs.stopped_runs import TrainingStopped

BAD_INPUT = 2
FAILURE = 1
STOPPED = 130  # 128 + SIGINT, like in shells
TRY_AGAIN = 75  # EX_TEMPFAIL of sysexits.h
PIPE_CLOSED = 141  # 128 + SIGPIPE
DEBUG = "KBERT_DEBUG"
# Errors that users can fix: values, files, folders. Everything else is a failure of the run.
_USERS = (ValueError, FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError)


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
            raise Exit(exit_code(error)) from error

    return wrapped


def exit_code(error: BaseException) -> int:
    """Returns the exit code of an error: 2 for what users can mend, 1 for a failure of the run."""
    return BAD_INPUT if isinstance(error, _USERS) else FAILURE


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

"""Errors of a command-line verb: a readable message on stderr, and an exit code."""

import functools
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import typer

from kbert.training.resume.stop_signals import TrainingStopped

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
    for everything else. With `--debug` (or the variable KBERT_DEBUG) the traceback comes before the
    message.

    Args:
        verb: The verb.
    """

    @functools.wraps(verb)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            verb(*args, **kwargs)
        except (typer.Exit, typer.Abort):
            raise
        except BrokenPipeError as error:
            # The reader of stdout has closed it, like `head`; Python must not complain at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(PIPE_CLOSED) from error
        except TrainingStopped as error:
            _tell(str(error))
            raise typer.Exit(TRY_AGAIN) from error
        except KeyboardInterrupt as error:
            _tell("Stopped.")
            raise typer.Exit(STOPPED) from error
        except Exception as error:
            if os.environ.get(DEBUG):
                traceback.print_exc()
            _tell(f"Error: {_message(error)}")
            raise typer.Exit(BAD_INPUT if isinstance(error, _USERS) else FAILURE) from error

    return wrapped


def _message(error: BaseException) -> str:
    """Returns the error's message, preceded by its class where the message is not enough."""
    text = str(error).strip()
    if isinstance(error, _USERS) and text:
        return text
    hint = "" if os.environ.get(DEBUG) else "  (kbert --debug shows where it happened)"
    return f"{type(error).__name__}: {text}{hint}"


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()

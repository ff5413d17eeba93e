"""`kbert`: the program. Each verb imports what it needs when it runs, so that `--help` is quick."""

import logging
import os
import warnings
from typing import Annotated, Any

# Before anything imports TensorFlow: its notes on CPU features are of no use to users.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_DEPRECATION_WARNINGS", "0")

from typer import Exit, Option, Typer, echo

from kbert.cli.commands.convert import convert, push
from kbert.cli.commands.demo import demo
from kbert.cli.commands.evaluate import evaluate
from kbert.cli.commands.export import check, export
from kbert.cli.commands.info import doctor, info
from kbert.cli.commands.launch import PASSED_ON, launch
from kbert.cli.commands.plot import plot
from kbert.cli.commands.predict import predict
from kbert.cli.commands.pretrain import prepare, pretrain
from kbert.cli.commands.serve import serve
from kbert.cli.commands.train import TrainCommand, train
from kbert.cli.frame.command import VerbCommand
from kbert.cli.frame.errors import DEBUG
from kbert.keras_names import load_keras_without

app = Typer(
    name="kbert",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(cls=TrainCommand)(train)
_VERBS = (
    *(prepare, pretrain, evaluate, predict, export, serve),
    *(check, convert, push, plot, info, doctor, demo),
)
for _verb in _VERBS:
    app.command(cls=VerbCommand)(_verb)
app.command(context_settings=PASSED_ON)(launch)


def _is_news(record: logging.LogRecord) -> bool:
    """Returns whether to log a record: retracing is normal, as each of several runs has graphs."""
    return "triggered tf.function retracing" not in record.getMessage()


def _show_version(wanted: bool) -> None:
    if wanted:
        from kbert.cli.actions.installation import versions

        echo("\n".join(f"{name} {value or 'not installed'}" for name, value in versions().items()))
        raise Exit()


@app.callback()
def program(
    version: Annotated[
        bool,
        Option(
            "--version",
            help="Show the versions of kbert and of what it rests on.",
            callback=_show_version,
            is_eager=True,
        ),
    ] = False,
    debug: Annotated[bool, Option("--debug", help="Show where an error happened.")] = False,
) -> None:
    """BERT from raw text to answers: train, measure, ask, export.

    Results go to stdout as JSON, progress and errors to stderr. Exit code 2 means bad input.

    Start with: kbert demo
    """
    logging.getLogger("tensorflow").addFilter(_is_news)
    if debug:
        os.environ[DEBUG] = "1"


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Shows a warning as training does: without the place in the source and its code."""
    echo(f"{category.__name__}: {message}", err=True)


def main() -> None:
    """Runs the program with the arguments of the process."""
    warnings.showwarning = _show_warning
    load_keras_without("matplotlib", "sklearn")  # a quarter of the time in which TensorFlow loads
    app()


if __name__ == "__main__":
    main()

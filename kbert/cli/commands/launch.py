"""`kbert launch`."""

import sys
from typing import Annotated

from typer import Context, Exit, Option

from kbert.cli.frame.errors import reported
from kbert.launch.launcher import launch_workers

_TRAINING = ("train", "pretrain")
PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True}


@reported
def launch(
    context: Context,
    workers: Annotated[int, Option(help="Processes to start.")] = 2,
    restarts: Annotated[int, Option(help="How often all are started again when one died.")] = 3,
) -> None:
    """Start several workers on this machine, and start all again when one dies.

    What follows is a command of kbert; it gets --strategy multi-worker.
    Each worker gets TF_CONFIG with free ports of this machine, and its
    share of the cores. The result of the first one goes to stdout.

    Example:

      kbert launch --workers 2 pretrain corpus/*.txt --vocabulary vocab.txt \\
          --size mini --output runs/mini
    """
    if not context.args:
        raise ValueError(
            "`COMMAND` must be given: a verb of kbert and its options, such as pretrain or train. "
            "Received: none"
        )
    if context.args[0] not in _TRAINING:
        raise ValueError(
            f"`COMMAND` must begin with {' or '.join(_TRAINING)}. Received: {context.args[0]!r}"
        )
    command = [sys.executable, "-m", "kbert.cli.main", *context.args]
    code = launch_workers([*command, "--strategy", "multi-worker"], workers, restarts)
    if code:
        raise Exit(code)

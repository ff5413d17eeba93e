"""What the training scripts of this folder share: a configuration, trained on a TPU."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path


def run(about: str, tasks: Sequence[str], arguments: Sequence[str] | None = None) -> int:
    """Trains as a configuration says, and prints the run directory.

    Args:
        about: The script's description; its first line is shown by --help.
        tasks: Those that its configuration may have.
        arguments: Those of the command line; None for the process's own.

    Returns:
        The exit code, as of `kbert`: 2 for bad input, 75 for a training that was asked to stop and
        can go on, 1 for a failure such as a full disk.
    """
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("config", type=Path, help="a YAML file")
    parser.add_argument("--output", help="the run directory, instead of the configuration's")
    parser.add_argument("--dry-run", action="store_true", help="train here, without a TPU")
    given = parser.parse_args(arguments)
    values = {"strategy": "one" if given.dry_run else "tpu"}
    if given.output is not None:
        values["output"] = given.output
    # TensorFlow takes seconds to load, which a wrong command line need not wait for.
    from kbert.cli.frame.errors import TRY_AGAIN, exit_code
    from kbert.training.config.any_config import config_from_yaml
    from kbert.training.run import train
    from kbert.training.runs.stopped_runs import TrainingStopped

    try:
        config = config_from_yaml(given.config, **values)
        if config.task not in tasks:
            expected = " or ".join(tasks)
            raise ValueError(f"`task` must be {expected}. Received: task={config.task!r}")
        print(train(config))
    except TrainingStopped as stopped:
        print(f"{parser.prog}: {stopped}", file=sys.stderr)
        return TRY_AGAIN
    except (OSError, ValueError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return exit_code(error)
    return 0

"""Fine-tunes an encoder on a task of GLUE, on a TPU.

    python tpu/finetune_glue.py CONFIG.yaml [--output FOLDER] [--dry-run]

CONFIG.yaml is such as tpu/configs/glue_mnli.yaml. `--dry-run` trains on the device that is
there, which shows that data and configuration are right before a TPU is paid for. A run that was
stopped goes on when the same command is given again. The last line printed is the run directory.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Trains as a configuration says.

    Args:
        arguments: Those of the command line; None for the process's own.

    Returns:
        The exit code: 2 for bad input, 75 for a training that was asked to stop and can go on.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", type=Path, help="a YAML file")
    parser.add_argument("--output", help="the run directory, instead of the configuration's")
    parser.add_argument("--dry-run", action="store_true", help="train here, without a TPU")
    given = parser.parse_args(arguments)
    values = {"strategy": "one" if given.dry_run else "tpu"}
    if given.output is not None:
        values["output"] = given.output
    # TensorFlow takes seconds to load, which a wrong command line need not wait for.
    from kbert.training.any_config import config_from_yaml
    from kbert.training.run import train
    from kbert.training.stop_signals import TrainingStopped

    try:
        config = config_from_yaml(given.config, **values)
        if config.task not in ("classification", "regression"):
            raise ValueError(
                f"`task` must be classification or regression. Received: task={config.task!r}"
            )
        print(train(config))
    except TrainingStopped as stopped:
        print(f"finetune_glue: {stopped}", file=sys.stderr)
        return 75
    except (OSError, ValueError) as error:
        print(f"finetune_glue: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Writes a run of a TPU as a SavedModel for TF Serving on CPUs or GPUs: BASE/<name>/<version>/.

    python tpu/export_run.py RUN BASE [--name NAME]

The weights are those of float32, in which they were kept while they were trained.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Exports one run.

    Args:
        arguments: Those of the command line; None for the process's own.

    Returns:
        The exit code: 2 for bad input, 1 for a failure such as a full disk.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="the directory of a run")
    parser.add_argument("base", type=Path, help="the folder of all models")
    parser.add_argument("--name", help="the model's name for the server; its Keras name if absent")
    given = parser.parse_args(arguments)
    # TensorFlow takes seconds to load, which a wrong command line need not wait for.
    from kbert.cli.frame.errors import exit_code
    from kbert.serving.export.export import export
    from kbert.training.runs.load_model import load_model

    try:
        print(export(load_model(given.run), given.base, given.name))
    except (OSError, ValueError) as error:
        print(f"export_run: {error}", file=sys.stderr)
        return exit_code(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Writes a trained model as a SavedModel for TF Serving: BASE/<name>/<version>/.

    python export/export_model.py RUN BASE [--name NAME] [--version N]

RUN is the directory of a training run, or of a saved model. The last line printed is the folder
that was written.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from kbert.serving.export.export import export
from kbert.serving.format.servable import check_export
from kbert.training.runs.load_model import load_model


def main(arguments: Sequence[str] | None = None) -> None:
    """Exports one model.

    Args:
        arguments: Those of the command line; None for the process's own.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="the directory of a run or of a saved model")
    parser.add_argument("base", type=Path, help="the folder of all models")
    parser.add_argument("--name", help="the model's name for the server; its Keras name if absent")
    parser.add_argument("--version", type=int, help="one more than the highest if absent")
    given = parser.parse_args(arguments)
    try:
        folder = export(load_model(given.run), given.base, given.name, given.version)
    except (OSError, ValueError) as error:
        raise SystemExit(f"export_model: {error}") from error
    report = check_export(folder)
    print(f"weights      {report.variable_bytes:>12,} bytes")
    print(f"all the rest {report.other_bytes:>12,} bytes")
    print(f"beside TensorFlow's own ops the server needs: {', '.join(report.text_ops) or 'none'}")
    print(folder)


if __name__ == "__main__":
    main()

"""`kbert pretrain`."""

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from kbert.cli.commands.train import run_and_tell
from kbert.cli.options.run_options import (
    ConfigFile,
    check_config_file,
    configured,
    given_values,
    with_run_options,
)
from kbert.cli.show.errors import reported
from kbert.training.config.pretraining_config import PretrainingConfig


@reported
def pretrain(
    files: Annotated[
        Optional[list[Path]],
        typer.Argument(help="Files of plain text to learn from; or give --text.", metavar="TEXT"),
    ] = None,
    config: ConfigFile = None,
    **given: Any,
) -> None:
    """Pretrain an encoder on plain text, and write a run directory.

    The examples are made during the training, in memory that
    does not grow with the text. The run directory is whole when it is
    there: a stopped run stays OUTPUT.incomplete, and the same command
    resumes it. The result on stdout is JSON.

    Examples:

      kbert pretrain papers/*.txt.gz --encoder all-MiniLM-L6-v2 \\
          --steps 20000 --output runs/papers

      kbert pretrain corpus/*.txt --vocabulary vocab.txt --size mini \\
          --validation held-out.txt --output runs/mini

      kbert pretrain --config run.yaml
    """
    check_config_file(config)
    values = given_values(given, PretrainingConfig)
    if files:
        if "text" in values:
            raise ValueError("`--text` must be left out where files are given without an option.")
        values["text"] = [str(file) for file in files]
    run_and_tell(configured(PretrainingConfig, values, config), ("final", "seconds"))


pretrain = with_run_options(pretrain, PretrainingConfig)

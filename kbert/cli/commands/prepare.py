"""`kbert prepare`."""

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from kbert.cli.options.run_options import given_values, with_run_options
from kbert.cli.show.errors import reported
from kbert.cli.show.json_output import write_result
from kbert.training.config.pretraining_config import PreparationConfig


@reported
def prepare(
    files: Annotated[
        Optional[list[Path]],
        typer.Argument(help="Files of plain text; or give --text.", metavar="TEXT"),
    ] = None,
    **given: Any,
) -> None:
    """Make examples to pretrain on of plain text, as TFRecords.

    They are in the layout of google-research/bert, for kbert pretrain
    --records and for other programs. The folder is whole when it is
    there, with manifest.json beside the records. The result on stdout
    is JSON.

    Example:

      kbert prepare corpus/*.txt --vocabulary vocab.txt --copies 10 \\
          --shards 64 --output records
    """
    values = given_values(given, PreparationConfig)
    if files:
        if "text" in values:
            raise ValueError("`--text` must be left out where files are given without an option.")
        values["text"] = [str(file) for file in files]
    config = PreparationConfig.from_dict(values)

    from kbert.training.first_look import look_first

    look_first(config)
    from kbert.training.pretraining.preparation import prepare_records

    count = prepare_records(config)
    write_result({"records": config.output, "examples": count, "shards": config.shards})


prepare = with_run_options(prepare, PreparationConfig)

"""`kbert pretrain`."""

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from kbert.cli.commands.train import check_config_file
from kbert.cli.options.run_options import given_values, with_run_options
from kbert.cli.show.errors import reported
from kbert.cli.show.json_output import write_result
from kbert.training.config.pretraining_config import PretrainingConfig
from kbert.training.runs.run_log import tell_stage

_SHOWN = ("final", "seconds")


@reported
def pretrain(
    files: Annotated[
        Optional[list[Path]],
        typer.Argument(help="Files of plain text to learn from; or give --text.", metavar="TEXT"),
    ] = None,
    config: Annotated[
        Optional[Path],
        typer.Option(
            help="YAML file with `key: value` for any option (with _ for -); options given on the "
            "command line go before it."
        ),
    ] = None,
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
    made = PretrainingConfig
    checked = made.from_dict(values) if config is None else made.from_yaml(config, **values)

    from kbert.training.first_look import look_first

    look_first(checked)
    tell_stage("loading TensorFlow")
    from kbert.training.recipes.pretraining import pretrain as pretrain_run
    from kbert.training.runs.run_directory import load_run

    run = load_run(pretrain_run(checked))
    shown = {key: run.metrics[key] for key in _SHOWN}
    write_result({"run": str(run.directory), "model": str(run.model_directory), **shown})


pretrain = with_run_options(pretrain, PretrainingConfig)

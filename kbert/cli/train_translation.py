"""`kbert train translation`."""

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from kbert.cli.errors import reported
from kbert.cli.run_options import given_values, with_run_options
from kbert.cli.train import check_config_file, run_and_tell
from kbert.training.translation_config import TASK, TranslationConfig


@reported
def train_translation(
    task: Annotated[
        Optional[str], typer.Argument(help=f"{TASK}.", metavar="TASK")
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
    """Train a translator from sentence pairs, and write a run directory.

    All pairs are read and filtered before the training starts.
    The run directory is whole when it is there: a stopped run stays
    OUTPUT.incomplete, and the same command goes on with it. The result
    on stdout is JSON.

    Examples:

      kbert train translation --train-source train.en --train-target train.de \\
          --validation-source val.en --validation-target val.de \\
          --output runs/en-de

      kbert train translation --train train.tsv --warm-start runs/en-de \\
          --bert all-MiniLM-L6-v2 --features cache --output runs/fused

      kbert train translation --config run.yaml
    """
    check_config_file(config)
    values = {**given_values(given, TranslationConfig), "task": task or TASK}
    made = TranslationConfig
    run_and_tell(made.from_dict(values) if config is None else made.from_yaml(config, **values))


train_translation = with_run_options(train_translation, TranslationConfig)

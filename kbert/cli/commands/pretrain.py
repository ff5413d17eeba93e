"""`kbert pretrain`, and `kbert prepare`, which makes examples ahead."""

from pathlib import Path
from typing import Annotated, Any

from typer import Argument

from kbert.cli.commands.train import run_and_tell
from kbert.cli.frame.errors import reported
from kbert.cli.frame.results import write_result
from kbert.cli.frame.run_options import ConfigFile, checked_config, with_run_options
from kbert.training.config.pretraining_config import PreparationConfig, PretrainingConfig


@reported
def pretrain(
    files: Annotated[
        list[Path] | None,
        Argument(help="Files of plain text to learn from; or give --text.", metavar="TEXT"),
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
    checked = checked_config(PretrainingConfig, config, given, **_text(given, files))
    run_and_tell(checked, ("final", "seconds"))


@reported
def prepare(
    files: Annotated[
        list[Path] | None, Argument(help="Files of plain text; or give --text.", metavar="TEXT")
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
    from kbert.training.run import look_first

    config = checked_config(PreparationConfig, None, given, **_text(given, files))
    look_first(config)
    from kbert.training.pretraining.preparation import prepare_records

    count = prepare_records(config)
    write_result({"records": config.output, "examples": count, "shards": config.shards})


def _text(given: dict[str, Any], files: list[Path] | None) -> dict[str, Any]:
    """Returns the value of the option `text` where files are given as arguments."""
    if not files:
        return {}
    if given.get("text") is not None:
        raise ValueError("`--text` must be left out where files are given without an option.")
    return {"text": [str(file) for file in files]}


pretrain = with_run_options(pretrain, PretrainingConfig)
prepare = with_run_options(prepare, PreparationConfig)

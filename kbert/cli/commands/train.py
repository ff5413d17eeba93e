"""`kbert train`."""

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from kbert.cli.options.run_options import given_values, with_run_options
from kbert.cli.show.errors import reported
from kbert.cli.show.json_output import write_result
from kbert.data.tables.table import nearest
from kbert.options.yaml_file import read_config_file
from kbert.training.config.any_config import AnyConfig
from kbert.training.config.finetuning_checks import TASKS
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.config.translation_config import TASK as TRANSLATION
from kbert.training.config.translation_config import TranslationConfig
from kbert.training.runs.run_log import tell_stage


@reported
def train(
    task: Annotated[
        Optional[str],
        typer.Argument(
            help=f"What to learn: {', '.join(TASKS)}; or {TRANSLATION}, which must be the first "
            "word and has options of its own.",
            metavar="TASK",
        ),
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
    """Fine-tune an encoder, and write a run directory.

    All examples are read and checked before the training starts.
    The run directory is whole when it is there: a stopped run stays
    OUTPUT.incomplete, and the same command resumes it. The result
    on stdout is JSON.

    Examples:

      kbert train classification --train train.tsv --validation dev.tsv \\
          --encoder all-MiniLM-L6-v2 --output runs/topics

      kbert train classification --glue sst2 --data glue/ --seeds 3 \\
          --encoder bert-base-uncased --output runs/sst2

      kbert train --config run.yaml --epochs 5

      kbert train translation --help
    """
    if task == TRANSLATION:
        raise ValueError(f"`{TRANSLATION}` must be the first word: kbert train {TRANSLATION} ...")
    check_config_file(config)
    _check_task(read_config_file(config).get("task") if task is None and config else task)
    values = given_values({**given, "task": task}, RunConfig)
    _run_and_tell(
        RunConfig.from_dict(values) if config is None else RunConfig.from_yaml(config, **values)
    )


@reported
def train_translation(
    task: Annotated[
        Optional[str], typer.Argument(help=f"{TRANSLATION}.", metavar="TASK")
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
    OUTPUT.incomplete, and the same command resumes it. The result
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
    values = {**given_values(given, TranslationConfig), "task": task or TRANSLATION}
    made = TranslationConfig
    _run_and_tell(made.from_dict(values) if config is None else made.from_yaml(config, **values))


def check_config_file(config: Path | None) -> None:
    """Checks that the file of `--config` exists.

    Args:
        config: The file, or None.

    Raises:
        FileNotFoundError: It does not exist.
    """
    from kbert.training.first_look import check_file

    if config is not None:
        check_file("--config", config)


def _check_task(task: Any) -> None:
    """Checks the task, with a hint to translation, which this verb's configuration lacks."""
    known = (*TASKS, TRANSLATION)
    if isinstance(task, str) and task not in known:
        raise ValueError(
            f"`task` must be one of {', '.join(known)}. Received: task={task!r}."
            f"{nearest(task, known)}"
        )


def _run_and_tell(config: AnyConfig) -> None:
    """Trains, and writes the result to stdout.

    Args:
        config: The configuration.
    """
    from kbert.training.first_look import look_first

    look_first(config)
    tell_stage("loading TensorFlow")
    from kbert.training.run import train as train_run
    from kbert.training.runs.run_directory import load_run

    run = load_run(train_run(config))
    shown = {key: run.metrics[key] for key in _SHOWN if key in run.metrics}
    write_result({"run": str(run.directory), "model": str(run.model_directory), **shown})


_SHOWN = (
    *("monitor", "kept_epoch", "averaged_epochs", "best_seed", "best", "best_values"),
    *("mean", "standard_deviation", "final"),
)
train = with_run_options(train, RunConfig)
train_translation = with_run_options(train_translation, TranslationConfig)

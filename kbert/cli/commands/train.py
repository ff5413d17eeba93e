"""`kbert train`, which has other options for translation."""

from collections.abc import Sequence
from typing import Annotated, Any, Optional

import typer
from typer.core import TyperCommand

from kbert.cli.commands.verb import (
    ConfigFile,
    check_config_file,
    checked_config,
    reported,
    with_run_options,
    write_result,
)
from kbert.data.tables.table import nearest
from kbert.options.kinds import read_config_file
from kbert.training.config.any_config import StoredConfig
from kbert.training.config.finetuning_config import TASKS, RunConfig
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
    config: ConfigFile = None,
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
    run_and_tell(checked_config(RunConfig, config, {**given, "task": task}), _SHOWN)


@reported
def train_translation(
    task: Annotated[
        Optional[str], typer.Argument(help=f"{TRANSLATION}.", metavar="TASK")
    ] = None,
    config: ConfigFile = None,
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
    checked = checked_config(TranslationConfig, config, given, task=task or TRANSLATION)
    run_and_tell(checked, _SHOWN)


def _check_task(task: Any) -> None:
    """Checks the task, with a hint to translation, which this verb's configuration lacks."""
    known = (*TASKS, TRANSLATION)
    if isinstance(task, str) and task not in known:
        raise ValueError(
            f"`task` must be one of {', '.join(known)}. Received: task={task!r}."
            f"{nearest(task, known)}"
        )


def run_and_tell(config: StoredConfig, keys: Sequence[str]) -> None:
    """Trains, and writes the result to stdout, with the metrics of `keys` that the run has."""
    from kbert.training.first_look import look_first

    look_first(config)
    tell_stage("loading TensorFlow")
    from kbert.training.run import train as train_run
    from kbert.training.runs.run_directory import load_run

    run = load_run(train_run(config))
    shown = {key: run.metrics[key] for key in keys if key in run.metrics}
    write_result({"run": str(run.directory), "model": str(run.model_directory), **shown})


class TrainCommand(TyperCommand):
    """The command `kbert train`, which delegates to another command for translation."""

    def make_context(
        self, info_name: Any, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Parses the arguments, or lets `kbert train translation` parse them."""
        if not asks_for_translation(args):
            return super().make_context(info_name, args, parent, **extra)
        # A typer app with a single command is that command.
        app = typer.Typer(
            add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich"
        )
        app.command(context_settings={"help_option_names": ["-h", "--help"]})(train_translation)
        return typer.main.get_command(app).make_context(info_name, args, parent, **extra)


def asks_for_translation(args: list[str]) -> bool:
    """Returns whether arguments of `kbert train` are for translation, by first word or file."""
    if args and not args[0].startswith("-"):
        return args[0] == TRANSLATION
    file = _value_of("--config", args)
    if file is None:
        return False
    try:
        return bool(read_config_file(file).get("task") == TRANSLATION)
    except (OSError, ValueError):
        return False  # the verb reads it again, and raises the error


def _value_of(option: str, args: list[str]) -> str | None:
    for place, word in enumerate(args):
        if word == option and place + 1 < len(args):
            return args[place + 1]
        if word.startswith(f"{option}="):
            return word.removeprefix(f"{option}=")
    return None


_SHOWN = (
    *("monitor", "kept_epoch", "averaged_epochs", "best_seed", "best", "best_values"),
    *("mean", "standard_deviation", "final"),
)
train = with_run_options(train, RunConfig)
train_translation = with_run_options(train_translation, TranslationConfig)

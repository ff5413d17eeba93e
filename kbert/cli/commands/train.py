"""`kbert train`."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer import Argument

from kbert.cli.frame.command import VerbCommand, asked_task, completion, with_fewer_options
from kbert.cli.frame.errors import reported
from kbert.cli.frame.results import write_result
from kbert.cli.frame.run_options import (
    ConfigFile,
    check_config_file,
    checked_config,
    with_run_options,
)
from kbert.hints import nearest
from kbert.options.kinds import read_config_file
from kbert.training.config.any_config import StoredConfig
from kbert.training.config.captioning_config import TASK as CAPTIONING
from kbert.training.config.captioning_config import CaptioningConfig
from kbert.training.config.finetuning_config import TASKS, RunConfig
from kbert.training.config.multi_task_config import TASK as MULTI_TASK
from kbert.training.config.multi_task_config import MultiTaskConfig
from kbert.training.config.stages_config import TASK as STAGES
from kbert.training.config.stages_config import StagesConfig
from kbert.training.config.translation_config import TASK as TRANSLATION
from kbert.training.config.translation_config import TranslationConfig
from kbert.training.runs.run_directory import tell_stage

# Metrics that a command writes to stdout.
_SHOWN = (
    *("monitor", "kept_epoch", "averaged_epochs", "best_seed", "best", "best_values"),
    *("mean", "standard_deviation", "final"),
)


@reported
def train(
    task: Annotated[
        str | None,
        Argument(
            help=f"What to learn: {', '.join(TASKS)}, by default {TASKS[0]}; or {TRANSLATION}, "
            f"{CAPTIONING}, {MULTI_TASK} or {STAGES}, which must be the first word and have "
            "options of their own.",
            metavar="TASK",
            autocompletion=completion(lambda: _EVERY),
        ),
    ] = None,
    config: ConfigFile = None,
    **given: Any,
) -> None:
    """Fine-tune an encoder, and write a run directory.

    Needs --train or --glue, --encoder and --output.
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
    if task in _OWN:
        raise ValueError(f"`{task}` must be the first word: kbert train {task} ...")
    check_config_file(config)
    named = read_config_file(config).get("task") if task is None and config else task
    if isinstance(named, str) and named not in _EVERY:
        raise ValueError(
            f"`task` must be one of {', '.join(_EVERY)}. Received: task={named!r}."
            f"{nearest(named, _EVERY)}"
        )
    run_and_tell(checked_config(RunConfig, config, {**given, "task": task}), _SHOWN)


@reported
def train_translation(
    task: Annotated[str | None, Argument(help=f"{TRANSLATION}.", metavar="TASK")] = None,
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


@reported
def train_captioning(
    task: Annotated[str | None, Argument(help=f"{CAPTIONING}.", metavar="TASK")] = None,
    config: ConfigFile = None,
    **given: Any,
) -> None:
    """Train a captioner from images with captions, and write a run directory.

    All images are seen once by the network, if it does not learn
    itself, before the training starts.
    The run directory is whole when it is there: a stopped run stays
    OUTPUT.incomplete, and the same command resumes it. The result
    on stdout is JSON.

    Examples:

      kbert train captioning --train captions.csv --images images/ \\
          --split 6000,1000,1000 --output runs/captions

      kbert train captioning --train train.csv --validation dev.csv \\
          --images images/ --network EfficientNetB0 \\
          --network-layer block5c_add --output runs/captions

      kbert train captioning --config run.yaml
    """
    checked = checked_config(CaptioningConfig, config, given, task=task or CAPTIONING)
    run_and_tell(checked, _SHOWN)


@reported
def train_multi_task(
    task: Annotated[str | None, Argument(help=f"{MULTI_TASK}.", metavar="TASK")] = None,
    config: ConfigFile = None,
    **given: Any,
) -> None:
    """Train one encoder on several tasks at once, and write a run directory.

    All examples are read and checked before the training starts.
    The run directory is whole when it is there, with a model for each
    task, model/NAME, that can be used by itself: a stopped run stays
    OUTPUT.incomplete, and the same command resumes it. The result
    on stdout is JSON.

    Examples:

      kbert train multi-task --tasks rte=rte.yaml,names=ner.yaml \\
          --encoder all-MiniLM-L6-v2 --sampling square-root --output runs/both

      kbert train multi-task --config run.yaml

      kbert train classification --train rte.tsv \\
          --encoder runs/both/model/rte --output runs/rte
    """
    checked = checked_config(MultiTaskConfig, config, given, task=task or MULTI_TASK)
    run_and_tell(checked, _SHOWN)


@reported
def train_stages(
    task: Annotated[str | None, Argument(help=f"{STAGES}.", metavar="TASK")] = None,
    config: ConfigFile = None,
    **given: Any,
) -> None:
    """Train in stages, each on the encoder of the one before it.

    The run directory is whole when it is there, with a run for each
    stage: a stopped chain stays OUTPUT.incomplete, and the same command
    resumes it. The result is JSON.

    Examples:

      kbert train stages --config chain.yaml
    """
    checked = checked_config(StagesConfig, config, given, task=task or STAGES)
    run_and_tell(checked, ("stages", "seconds"))


def run_and_tell(config: StoredConfig, keys: Sequence[str]) -> None:
    """Trains, and writes the result to stdout, with the metrics of `keys` that the run has."""
    from kbert.training.run import look_first
    from kbert.training.run import train as train_run
    from kbert.training.runs.run_directory import load_run

    look_first(config)
    tell_stage("loading TensorFlow")
    run = load_run(train_run(config))
    # Of runs without held-out parts some are None or {}.
    shown = {key: run.metrics[key] for key in keys if run.metrics.get(key) not in (None, {})}
    write_result({"run": str(run.directory), "model": str(run.model_directory), **shown})


class TrainCommand(VerbCommand):
    """The command `kbert train`, which delegates to others for tasks with their own options."""

    def make_context(
        self, info_name: Any, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Parses the arguments, or lets the command of their task parse them."""
        own = _OWN.get(asked_task(args) or "")
        if own is None:
            command = with_fewer_options(self, args)
            return super(TrainCommand, command).make_context(info_name, args, parent, **extra)
        # A typer app with a single command is that command.
        app = typer.Typer(
            add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich"
        )
        settings = {"help_option_names": ["-h", "--help"]}
        app.command(cls=VerbCommand, context_settings=settings)(own)
        return typer.main.get_command(app).make_context(info_name, args, parent, **extra)


train = with_run_options(train, RunConfig)
train_translation = with_run_options(train_translation, TranslationConfig)
train_captioning = with_run_options(train_captioning, CaptioningConfig)
train_multi_task = with_run_options(train_multi_task, MultiTaskConfig)
train_stages = with_run_options(train_stages, StagesConfig)
# Tasks with options of their own -> their commands.
_OWN = {
    TRANSLATION: train_translation,
    CAPTIONING: train_captioning,
    MULTI_TASK: train_multi_task,
    STAGES: train_stages,
}
_EVERY = (*TASKS, *_OWN)  # a task's configuration knows TASKS alone

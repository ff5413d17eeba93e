"""A run: `look_first` checks what its configuration names, and `train` makes its directory.

TensorFlow takes seconds to import, and the error of a wrong name should not. So files, columns,
names and output are checked without it, and the rest of the files by their readers. The recipe of
a run, which imports TensorFlow, is loaded when it is trained.
"""

import os
from functools import singledispatch
from pathlib import Path
from typing import Any

from kbert.architectures import loaded
from kbert.checkpoints.arrays.checkpoint_files import FORMAT_FILES
from kbert.checkpoints.pretrained import find_name
from kbert.checkpoints.read_checkpoint import detect_format
from kbert.data.tables.table import check_columns
from kbert.hints import nearest
from kbert.options.configuration import MULTI_WORKER, ONE, RunOptions, check_strategy, wrong
from kbert.storage.json_files import read_json_object
from kbert.tasks.finetuned_task import DATASETS
from kbert.tasks.registry import finetuned_task
from kbert.training.config.any_config import StoredConfig
from kbert.training.config.captioning_config import CaptioningConfig
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.config.multi_task_config import MultiTaskConfig
from kbert.training.config.pretraining_config import (
    ELSEWHERE,
    PreparationConfig,
    PretrainingConfig,
    found_files,
)
from kbert.training.config.stages_config import STAGE
from kbert.training.config.stages_config import TASK as STAGES
from kbert.training.config.stages_config import StagesConfig
from kbert.training.config.translation_config import PARTS, TranslationConfig
from kbert.training.runs.run_directory import check_output, model_of
from kbert.training.runs.stopped_runs import how_to_resume, resumes, stop_signals


@singledispatch
def look_first(config: StoredConfig | PreparationConfig) -> None:
    """Checks everything that a configuration names; the errors name the option."""
    raise TypeError(f"`config` must be a configuration. Received: {type(config).__name__}")


@look_first.register
def _look_at_preparation(config: PreparationConfig) -> None:
    config.check_output()
    _check_files(config, "vocabulary")
    found_files("text", config.text or [])


def check_file(option: str, path: str | os.PathLike[str]) -> None:
    """Checks that a file exists; a pipe counts too. `option` named it, such as "--train"."""
    file = Path(path)
    if file.exists() and not file.is_dir():
        return
    if file.is_dir():
        what = "is a folder"
    else:
        beside = [one.name for one in file.parent.iterdir()] if file.parent.is_dir() else []
        near = nearest(file.name, beside)
        what = f"does not exist.{near}" if near else "does not exist"
    raise FileNotFoundError(
        f"`{option}` must be a file. Received: {os.fspath(path)!r}, which {what}"
    )


def check_table(task: str, path: str, columns: dict[str, str | int | None]) -> None:
    """Checks the columns `text_a`, `text_b` and `label` against the first lines of a file."""
    finetuned_task(task).check_columns(path, columns)


def _check_output(config: RunOptions) -> None:
    # Of several workers another one may have begun the run.
    if getattr(config, "strategy", ONE) != MULTI_WORKER:
        check_output(config.output or "", config.overwrite, resumes(config))


def _check_files(config: StoredConfig | PreparationConfig, *keys: str) -> None:
    for key in keys:
        path = getattr(config, key)
        if path is not None and not path.startswith(DATASETS):
            check_file(f"--{key.replace('_', '-')}", path)


def _check_encoder(name: str | None, option: str = "--encoder") -> None:
    """Checks that an encoder is a known name, a run, or a checkpoint in any format."""
    if name is not None and not name.startswith(STAGE):  # which is not there yet
        found = find_name(name, option)
        if isinstance(found, Path):
            detect_format(found, option)


@look_first.register
def _look_at_run(config: RunConfig) -> None:
    _check_output(config)
    _check_files(config, "vocabulary")
    _look_at_examples(config)
    _look_at_encoder(config)
    if not config.is_scratch:
        _check_head(config)


@look_first.register
def _look_at_tasks(config: MultiTaskConfig) -> None:
    _check_output(config)
    _check_files(config, "vocabulary")
    for name, one in config.task_configs.items():
        try:
            _look_at_examples(one)
        except (ValueError, FileNotFoundError) as error:
            raise type(error)(f"tasks.{name}: {error}") from error
    _look_at_encoder(next(iter(config.task_configs.values())))


@look_first.register
def _look_at_stages(config: StagesConfig) -> None:
    _check_output(config)
    for name, one in config.configs_to_check().items():
        try:
            look_first(one.with_values(overwrite=config.overwrite))
        except (ValueError, FileNotFoundError) as error:
            raise type(error)(f"stages.{name}: {error}") from error


def _look_at_examples(config: RunConfig) -> None:
    for part in PARTS:
        given = getattr(config, part)
        if str(given).startswith(DATASETS):
            continue
        if config.glue is not None:
            finetuned_task(config.task).check_glue(config, part)
        elif given is not None:
            _check_files(config, part)
            columns = {"text_a": config.text_a, "text_b": config.text_b, "label": config.label}
            check_table(config.task, given, columns)


def _look_at_encoder(config: RunConfig) -> None:
    if config.scratch_size is None:
        _check_encoder(config.encoder_name)


def _check_head(config: RunConfig) -> None:
    """Checks that the head of a saved model of the run's task, which goes on, is the chosen one."""
    task, name = finetuned_task(config.task), config.encoder or ""
    # By default it goes on with the one it has; with features it has a new one.
    if config.head == RunConfig.head or config.features is not None or name.startswith(STAGE):
        return
    found = find_name(name)
    if config.vocabulary is not None or not isinstance(found, Path):
        return
    folder = detect_format(found)
    if folder.name != "kbert":
        return
    saved = read_json_object(folder.path / FORMAT_FILES[folder.name]).get("pipeline", {})
    if saved.get("class") == task.model_name and saved.get("head", config.head) != config.head:
        raise wrong("head", f"{saved['head']!r}, as that of {config.encoder}", config.head)


@look_first.register
def _look_at_translation(config: TranslationConfig) -> None:
    _check_output(config)
    sides = [f"{part}_{side}" for part in PARTS for side in ("source", "target")]
    _check_files(config, *PARTS, *sides, "source_subwords", "target_subwords")
    for path in (getattr(config, part) for part in PARTS):
        if path is not None and not path.startswith(DATASETS):
            columns = (config.source_column, config.target_column)
            by_index = any(isinstance(column, int) for column in columns)
            check_columns(path, columns, header=not by_index)
    _check_encoder(_of_run(config.bert), "--bert")
    start = _of_run(config.warm_start)
    if start is not None and not Path(start).exists():
        raise FileNotFoundError(
            f"`--warm-start` must be a run or the folder of a translator. Received: {start!r}"
        )


@look_first.register
def _look_at_captioning(config: CaptioningConfig) -> None:
    _check_output(config)
    _check_files(config, *PARTS, "subwords")
    if not Path(config.images or "").is_dir():
        raise FileNotFoundError(f"`--images` must be a folder. Received: {config.images!r}")
    if config.network.endswith(".keras"):
        _check_files(config, "network")


@look_first.register
def _look_at_pretraining(config: PretrainingConfig) -> None:
    _check_output(config)
    _check_files(config, "vocabulary")
    for key in ("text", "records", "validation"):
        patterns = getattr(config, key) or []
        found_files(key, [one for one in patterns if key == "text" or ELSEWHERE not in one])
    _check_encoder(_of_run(config.encoder))


def _of_run(name: str | None) -> str | None:
    return None if name is None else os.fspath(model_of(name))


# Configuration -> its recipe, by its name in this folder.
_RECIPES: dict[type[StoredConfig], str] = {
    RunConfig: "recipes.finetuning.Finetuning",
    TranslationConfig: "recipes.translation.TranslationTraining",
    CaptioningConfig: "recipes.captioning.CaptioningTraining",
    MultiTaskConfig: "recipes.multi_task.MultiTaskTraining",
    PretrainingConfig: "recipes.pretraining.Pretraining",
}


def train(config: StoredConfig) -> Path:
    """Trains a configuration of any task: once, with several seeds, or over a grid.

    All examples are read and checked before anything is trained. Progress goes to stderr. A stopped
    run is resumed, see docs/resuming.md.

    The run directory, which is returned, holds `config.yaml`, `model/` (kbert's own format, with
    the vocabulary), `metrics.json` (final, and epoch by epoch), `report.json`, `environment.json`
    and `log.txt`; a run of translation also `subwords/`. It is called `<output>.incomplete` until
    the run is finished, see `kbert.training.runs.run_directory`.

    Raises:
        ValueError: Data, encoder or configuration are wrong or do not fit each other.
        FileNotFoundError: A file is missing.
        FileExistsError: The output, or the folder of a stopped run, exists already.
        FloatingPointError: The loss became infinite or NaN; its batch is in a file.
        TrainingStopped: SIGTERM or Ctrl-C came; the state is saved.
    """
    if config.task == STAGES:
        with stop_signals(how_to_resume(config)):
            chain: Path = loaded("kbert.training.stages.train_stages")(config)
        return chain
    placed: Any = config
    check_strategy(placed)
    if placed.strategy == ONE:
        return _trained(placed)
    with loaded("kbert.training.distributed.strategies.in_its_place")(placed) as own:
        return _trained(own)


def _trained(config: Any) -> Path:
    with stop_signals(how_to_resume(config)):  # between the runs of several seeds, too
        recipe = loaded(f"kbert.training.{_RECIPES[type(config)]}")
        if getattr(config, "grid", False) is not False:
            run: Path = loaded("kbert.training.several_runs.train_grid")(config)
        elif getattr(config, "seeds", 1) > 1:
            run = loaded("kbert.training.several_runs.train_seeds")(config, recipe=recipe)
        else:
            run = loaded("kbert.training.recipes.recipe.run_recipe")(recipe(config))
    return run

"""`train`: the one function that turns a configuration into a finished run directory."""

import importlib
from pathlib import Path
from typing import Any

from kbert.options.configuration import ONE, check_strategy
from kbert.training.config.any_config import StoredConfig
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.config.pretraining_config import PretrainingConfig
from kbert.training.config.translation_config import TranslationConfig
from kbert.training.distributed.strategies import in_its_place
from kbert.training.grid import train_grid
from kbert.training.recipes.recipe import run_recipe
from kbert.training.resume.resumed_run import way_on
from kbert.training.resume.stop_signals import stop_signals
from kbert.training.seeds import train_seeds

# The recipe of each kind of configuration, imported when it is run.
_RECIPES: dict[type[StoredConfig], tuple[str, str]] = {
    RunConfig: ("kbert.training.recipes.finetuning", "Finetuning"),
    TranslationConfig: ("kbert.training.recipes.translation", "TranslationTraining"),
    PretrainingConfig: ("kbert.training.recipes.pretraining", "Pretraining"),
}


def train(config: StoredConfig) -> Path:
    """Trains a configuration of any task: once, with several seeds, or over a grid.

    All examples are read and checked before anything is trained. Progress goes to stderr.

    The run directory holds `config.yaml`, `model/` (kbert's own format, with the vocabulary),
    `metrics.json` (final, and epoch by epoch), `report.json`, `environment.json` and `log.txt`. It
    is called `<output>.incomplete` until the run is finished. See
    `kbert.training.runs.run_directory`. A run of translation also holds `subwords/`. A stopped run
    is resumed, see docs/resuming.md.

    Args:
        config: The configuration.

    Returns:
        The run directory, for `kbert.training.runs.run_directory.load_run`.

    Raises:
        ValueError: Data, encoder or configuration are wrong or do not fit each other.
        FileNotFoundError: A file is missing.
        FileExistsError: The output, or the folder of a stopped run, exists already.
        FloatingPointError: The loss became infinite or NaN; its batch is in a file.
        TrainingStopped: SIGTERM or Ctrl-C came; the state is saved.
    """
    check_strategy(config)
    if config.strategy == ONE:
        return _trained(config)
    with in_its_place(config) as own:
        return _trained(own)


def _trained(config: Any) -> Path:
    with stop_signals(way_on(config)):  # between the runs of several seeds, too
        if getattr(config, "grid", False) is not False:
            return train_grid(config)
        module, name = _RECIPES[type(config)]
        recipe = getattr(importlib.import_module(module), name)
        if getattr(config, "seeds", 1) > 1:
            return train_seeds(config, recipe=recipe)
        return run_recipe(recipe(config))

"""`train`: the one function that turns a configuration into a finished run directory."""

from pathlib import Path
from typing import Any

from kbert.training.config.any_config import StoredConfig
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.config.pretraining_config import PretrainingConfig
from kbert.training.config.translation_config import TranslationConfig
from kbert.training.distributed.strategies import in_its_place
from kbert.training.recipes.finetuning import Finetuning
from kbert.training.recipes.pretraining import Pretraining
from kbert.training.recipes.recipe import run_recipe
from kbert.training.recipes.translation import TranslationTraining
from kbert.training.runs.resumed_run import how_to_resume
from kbert.training.runs.stop_signals import stop_signals
from kbert.training.several_runs import train_grid, train_seeds

_RECIPES: dict[type[StoredConfig], Any] = {
    RunConfig: Finetuning,
    TranslationConfig: TranslationTraining,
    PretrainingConfig: Pretraining,
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
    with in_its_place(config) as own:
        return _trained(own)


def _trained(config: Any) -> Path:
    with stop_signals(how_to_resume(config)):  # between the runs of several seeds, too
        if getattr(config, "grid", False) is not False:
            return train_grid(config)
        recipe = _RECIPES[type(config)]
        if getattr(config, "seeds", 1) > 1:
            return train_seeds(config, recipe=recipe)
        return run_recipe(recipe(config))

"""Reader of configurations of any task, by the task that a file or dict names."""

import os
from collections.abc import Mapping
from typing import Any

from kbert.options.kinds import read_config_file
from kbert.training.config import (
    captioning_config,
    multi_task_config,
    pretraining_config,
    stages_config,
    translation_config,
)
from kbert.training.config.captioning_config import CaptioningConfig
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.config.multi_task_config import MultiTaskConfig
from kbert.training.config.pretraining_config import PretrainingConfig
from kbert.training.config.stages_config import StagesConfig
from kbert.training.config.translation_config import TranslationConfig

# Of runs that train a task on examples, and of all runs.
AnyConfig = RunConfig | MultiTaskConfig | TranslationConfig | CaptioningConfig
StoredConfig = AnyConfig | PretrainingConfig | StagesConfig


def config_class(task: Any) -> type[StoredConfig]:
    """Returns the class of the configurations of a task; `RunConfig` rejects an unknown one."""
    own: dict[Any, type[StoredConfig]] = {
        pretraining_config.TASK: PretrainingConfig,
        translation_config.TASK: TranslationConfig,
        captioning_config.TASK: CaptioningConfig,
        multi_task_config.TASK: MultiTaskConfig,
        stages_config.TASK: StagesConfig,
    }
    return own.get(task, RunConfig)


def config_from_dict(values: Mapping[str, Any], source: str = "The configuration") -> StoredConfig:
    """Creates the configuration of the task that the values name; absent keys have defaults."""
    return config_class(values.get("task")).from_dict(values, source)


def config_from_yaml(path: str | os.PathLike[str], **overrides: Any) -> StoredConfig:
    """Creates the configuration of a YAML file, of the task that it names; `overrides` go first."""
    return config_from_dict({**read_config_file(path), **overrides}, os.fspath(path))

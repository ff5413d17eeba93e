"""Reader of configurations of any task, by the task that a file or dict names."""

import os
from collections.abc import Mapping
from typing import Any

from kbert.options.kinds import read_config_file
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.config.pretraining_config import TASK as PRETRAINING
from kbert.training.config.pretraining_config import PretrainingConfig
from kbert.training.config.translation_config import TASK, TranslationConfig

# Of runs that train a task on examples, and of all runs.
AnyConfig = RunConfig | TranslationConfig
StoredConfig = AnyConfig | PretrainingConfig


def config_class(task: Any) -> type[StoredConfig]:
    """Returns the class of the configurations of a task.

    Args:
        task: The task's name; an unknown one is rejected by `RunConfig`.
    """
    if task == PRETRAINING:
        return PretrainingConfig
    return TranslationConfig if task == TASK else RunConfig


def config_from_dict(values: Mapping[str, Any], source: str = "The configuration") -> StoredConfig:
    """Creates the configuration of the task that the values name.

    Args:
        values: Keys and values; absent keys have their defaults.

    Raises:
        ValueError: A key is unknown, or a value is wrong.
    """
    return config_class(values.get("task")).from_dict(values, source)


def config_from_yaml(path: str | os.PathLike[str], **overrides: Any) -> StoredConfig:
    """Creates the configuration of a YAML file, of the task that it names.

    Args:
        **overrides: Values that override the file's.

    Raises:
        ValueError: A key is unknown, a value is wrong, or the file is not a YAML mapping.
        FileNotFoundError: There is no such file.
    """
    return config_from_dict({**read_config_file(path), **overrides}, os.fspath(path))

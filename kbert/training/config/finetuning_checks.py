"""Checks of the values of a fine-tuning configuration against each other."""

from typing import Any

from kbert.metrics.glue_names import glue_task_name
from kbert.models.sizes import BERT_SIZES
from kbert.options.configuration import check_default, wrong
from kbert.options.shared import TPU
from kbert.tasks.registry import FINETUNED, finetuned_task, finetuned_tasks

TASKS = FINETUNED
SCRATCH = "scratch:"


def check_values(config: Any) -> None:
    """Checks the values of a configuration against each other.

    Args:
        config: A `RunConfig` whose single values have been checked.

    Raises:
        ValueError: Two of them contradict each other, or one is missing.
    """
    _check_model(config)
    _check_data(config)
    _check_choices(config)


def _check_model(config: Any) -> None:
    if config.encoder is None:
        raise wrong("encoder", "given: a name, a folder, or scratch:SIZE", None)
    size = config.scratch_size
    if size is not None and size not in BERT_SIZES:
        raise wrong("encoder", f"scratch: and one of {', '.join(BERT_SIZES)}", config.encoder)
    if size is not None and config.vocabulary is None:
        raise wrong("vocabulary", f"given with encoder={config.encoder!r}", None)


def _check_data(config: Any) -> None:
    if config.glue is not None:
        name = glue_task_name(config.glue)
        expected = next(task.name for task in finetuned_tasks() if task.is_of_glue(name))
        if config.task != expected:
            raise wrong("task", f"{expected} with glue={config.glue!r}", config.task)
        if config.data is None:
            raise wrong("data", f"the folder of GLUE with glue={config.glue!r}", None)
    elif config.train is None:
        raise wrong("train", "given: a file or tfds:NAME (or give glue and data)", None)
    finetuned_task(config.task).check(config)


def _check_choices(config: Any) -> None:
    own = finetuned_task(config.task).options
    every = (key for task in finetuned_tasks() for key in task.options)
    others = dict.fromkeys(key for key in every if key not in own)
    check_default(config, others, f"with task={config.task!r}")
    for key, given in (("grid", config.grid), ("strategy", config.strategy == TPU)):
        if given and config.batch_tokens is not None:
            raise wrong(
                "batch_tokens", f"left out with {key}={getattr(config, key)}", config.batch_tokens
            )
    if config.glue is None and config.validation is None:
        for key in ("early_stopping", "monitor", "grid"):
            if getattr(config, key) not in (None, False):
                raise wrong(key, "left out where there is no validation", getattr(config, key))

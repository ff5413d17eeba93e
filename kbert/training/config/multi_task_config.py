"""`MultiTaskConfig`: all options of a run on several tasks, their defaults and contradictions."""

from dataclasses import dataclass, field
from typing import Any

from kbert.layers.adapters.configs import KINDS as ADAPTERS
from kbert.options.configuration import (
    TPU,
    EpochOptions,
    OptimizerOptions,
    PlacementOptions,
    RunOptions,
    check_default,
    wrong,
)
from kbert.options.kinds import (
    Kind,
    choice,
    entries,
    is_number,
    number,
    option,
    parse_yaml,
    text,
)
from kbert.tasks.registry import finetuned_task
from kbert.training.config.finetuning_config import RunConfig

TASK = "multi-task"
MEAN = "mean"  # over the tasks, of the metric that each is compared by
WEIGHT = "weight"
SAMPLINGS = ("proportional", "square-root", "temperature", "annealed")
_TASKS = "Tasks"
# Of a run on one task: options that stand beside `tasks`, and those of one task alone.
_BESIDE = (
    *("encoder", "vocabulary", "lowercase", "encoder_dropout", "epochs", "batch_size"),
    *("batch_tokens", "learning_rate", "warmup_fraction", "gradient_checkpointing"),
)
_OF_ONE = (
    *("adapter", "adapter_dim", "fuse", "lora_rank", "lora_alpha", "lora_targets"),
    *("features", "lstm_dim", "feature_cache", "grid"),
)


def _is_positive(value: Any) -> bool:
    return is_number(value) and value > 0


def _is_sampling(value: Any) -> bool:
    if isinstance(value, str):
        return value in SAMPLINGS
    return isinstance(value, dict) and value != {} and all(map(_is_positive, value.values()))


def _as_in_run(name: str) -> Any:
    """Returns an option that a run on one task has too."""
    described: Any = RunConfig.__dataclass_fields__[name]
    return field(default=described.default, metadata=described.metadata)


@dataclass(frozen=True)
class MultiTaskConfig(EpochOptions, OptimizerOptions, PlacementOptions, RunOptions):
    """The configuration of a run that trains one encoder on several tasks at once.

    An entry of `tasks` has the options that a run on this task alone has for its data and head:
    `task`, `train`, `validation`, `test`, columns, `labels`, `class_weights`, `monitor`,
    `max_sequence_length` and so on; and `weight`, the factor of its loss. See `docs/transfer.md`.
    """

    needed = ("tasks", "encoder", "output")

    task: str = option(TASK, choice(TASK), _TASKS, "What is learned.")
    tasks: dict[str, Any] | None = option(
        None,
        entries("tasks"),
        _TASKS,
        "Names of the tasks, each with a YAML file of the options that a run on it alone has: "
        "rte=rte.yaml,names=ner.yaml; in a file of --config with these options themselves. weight "
        "among them is the factor of its loss.",
    )
    sampling: Any = option(
        SAMPLINGS[0],
        Kind(
            f"one of {', '.join(SAMPLINGS)}, or a number above 0 for each task",
            _is_sampling,
            from_text=lambda v: parse_yaml(v, "`sampling`") if v.startswith("{") else v,
            names=SAMPLINGS,
        ),
        _TASKS,
        "How often a task is drawn: proportional to its number of examples, to its square-root or "
        "another power (temperature), annealed (by size first, nearly alike in the end), or "
        "{name: share}.",
    )
    temperature: float = option(
        2.0, number("a number above 0", lambda v: v > 0), _TASKS,
        "Of sampling temperature: the power is 1/temperature.",
    )
    task_adapters: str | None = option(
        None, choice(*ADAPTERS, optional=True), "Model",
        "An adapter in each block for each task, which trains beside the encoder: houlsby, "
        "pfeiffer or lora.",
    )
    encoder: str | None = _as_in_run("encoder")
    vocabulary: str | None = _as_in_run("vocabulary")
    lowercase: bool = _as_in_run("lowercase")
    encoder_dropout: float | None = _as_in_run("encoder_dropout")
    epochs: int = _as_in_run("epochs")
    batch_size: int = _as_in_run("batch_size")
    batch_tokens: int | None = _as_in_run("batch_tokens")
    learning_rate: float | None = option(
        None, number("a number above 0", lambda v: v > 0, optional=True), "Training",
        "Peak of the learning rate, by default 5e-5, with task_adapters too.",
    )
    warmup_fraction: float = _as_in_run("warmup_fraction")
    monitor: str = option(
        MEAN, text("a task's name"), "Training",
        "What epochs are compared by: mean, over the tasks with validation examples, of the metric "
        "that each is compared by; or the name of one.",
    )
    gradient_checkpointing: bool = _as_in_run("gradient_checkpointing")

    def check_together(self) -> None:
        """Checks the values against each other, and the options of each task."""
        super().check_together()
        tasks = self.tasks or {}
        if len(tasks) < 2:
            raise wrong("tasks", "given: two tasks or more, by names", self.tasks)
        for name in tasks:
            if not str(name).isidentifier() or name == MEAN:
                raise wrong("tasks", f"by names of letters, digits and _, other than {MEAN}", name)
        if isinstance(self.sampling, dict) and set(self.sampling) != set(tasks):
            raise wrong("sampling", f"a number for each of {', '.join(tasks)}", self.sampling)
        if self.sampling != "temperature":
            check_default(self, ("temperature",), f"with sampling={self.sampling}")
        if self.strategy == TPU and self.batch_tokens is not None:
            raise wrong("batch_tokens", f"left out with strategy={TPU}", self.batch_tokens)
        for name in self.loss_weights:
            if not _is_positive(self.loss_weights[name]):
                expected = "a number above 0"
                raise wrong(f"tasks.{name}.{WEIGHT}", expected, self.loss_weights[name])
        configs = self.task_configs
        measured = [name for name, one in configs.items() if _has_validation(one)]
        if not measured:
            check_default(self, ("early_stopping", "monitor"), "where no task has a validation")
        elif self.monitor not in (MEAN, *measured):
            raise wrong("monitor", f"one of {', '.join((MEAN, *measured))}", self.monitor)

    @property
    def loss_weights(self) -> dict[str, Any]:
        """The factor of each task's loss."""
        return {name: options.get(WEIGHT, 1.0) for name, options in (self.tasks or {}).items()}

    @property
    def task_configs(self) -> dict[str, RunConfig]:
        """The configuration of each task, as that of a run on it alone."""
        every = (*_BESIDE, *("seed", "strategy", "precision", "output"))
        shared = {key: getattr(self, key) for key in every}
        return {
            name: _config_of(f"tasks.{name}", shared, options)
            for name, options in (self.tasks or {}).items()
        }


def _config_of(source: str, shared: dict[str, Any], options: dict[str, Any]) -> RunConfig:
    beside = {field.name for field in MultiTaskConfig.options()} - {"task", "monitor"}
    for key in options:
        if key in beside:
            raise ValueError(f"{source}: the key must not be one of those beside `tasks`. "
                             f"Received: {key!r}")
        if key in _OF_ONE:
            raise ValueError(f"{source}: the key must not be one of a run on a task alone. "
                             f"Received: {key!r}")
    own = {key: value for key, value in options.items() if key != WEIGHT}
    try:
        found = RunConfig.from_dict({**shared, **own}, source)
    except ValueError as error:
        message = str(error)
        if message.startswith(source):
            raise
        raise ValueError(f"{source}: {message}") from error
    if not finetuned_task(found.task).has_one_sequence:
        raise wrong(f"{source}.task", "one whose model reads one sequence a row", found.task)
    return found


def _has_validation(config: RunConfig) -> bool:
    return finetuned_task(config.task).source(config, "validation") is not None

"""Training of one encoder on several tasks at once."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kbert.data.batches.mixtures import ANNEALED, Mixture, mixture
from kbert.data.batches.plans import padding_share
from kbert.options.configuration import TPU
from kbert.tasks.inputs import batch_sizes
from kbert.tasks.multi_task.model import MultiTaskModel
from kbert.tasks.registry import finetuned_task
from kbert.training.callbacks.epoch_record import EpochRecord, losses
from kbert.training.callbacks.state_saver import pieces_of
from kbert.training.config.multi_task_config import MEAN, MultiTaskConfig
from kbert.training.recipes.finetuned_model import build_model, loss_of, model_on, optimizer_of
from kbert.training.recipes.finetuning import (
    RunData,
    examples_lines,
    examples_report,
    monitored_metric,
    read_run_data,
)
from kbert.training.recipes.recipe import EpochRecipe, held_out
from kbert.training.runs.run_directory import CHECKPOINTS, tell_stage
from kbert.training.runs.stopped_runs import changed_data
from kbert.training.runs.train_state import order_of, sha256_of_arrays

# With the examples they determine the next batch.
_OF_THE_ORDER = ("batch_size", "batch_tokens", "seed", "sampling", "temperature")


@dataclass(frozen=True)
class TasksData:
    """The examples of a run on several tasks, by the names of these."""

    tasks: dict[str, RunData]

    @property
    def hashes(self) -> dict[str, str]:
        """Hashes of the parts, by their keys in a run's report."""
        every = {name: data.hashes for name, data in self.tasks.items()}
        return {f"{name}_{key}": value for name, one in every.items() for key, value in one.items()}


def read_tasks_data(config: MultiTaskConfig) -> TasksData:
    """Reads all examples of a run and checks them; errors name task, file and line."""
    found = {}
    for name, one in config.task_configs.items():
        try:
            found[name] = read_run_data(one)
        except (ValueError, FileNotFoundError) as error:
            raise type(error)(f"tasks.{name}: {error}") from error
    return TasksData(found)


class Monitored(NamedTuple):
    """The metric that a task is compared by, and what it is at most."""

    metric: str
    scale: float = 1.0


def task_metrics(found: Mapping[str, dict[str, Any]], monitors: Mapping[str, Monitored]) -> Any:
    """Returns the metrics of several tasks as one dict, "TASK_METRIC", after the mean over them.

    The mean is of the metric that each task is compared by, percents as fractions.
    """
    if not found:
        return {}
    mean = statistics.fmean(
        found[name][monitored.metric] / monitored.scale
        for name, monitored in monitors.items()
        if name in found
    )
    flat = {f"{name}_{key}": value for name, one in found.items() for key, value in one.items()}
    return {MEAN: mean, **flat}


@dataclass(frozen=True)
class MeasuredTasks:
    """The validation examples of several tasks; of each the metric that it is compared by."""

    parts: Mapping[str, Any]
    monitors: Mapping[str, Monitored]

    def measured(self, model: MultiTaskModel) -> dict[str, Any]:
        """Returns the metrics of the models of the tasks."""
        found = {}
        for name, part in self.parts.items():
            with model.alone(name) as one:
                found[name] = part.measured(one)
        every: dict[str, Any] = task_metrics(found, self.monitors)
        kept = (MEAN, *(f"{name}_{one.metric}" for name, one in self.monitors.items()))
        return {name: value for name, value in every.items() if name in kept}


class MultiTaskTraining(EpochRecipe):
    """The recipe of a run on several tasks."""

    config: MultiTaskConfig
    data: TasksData | None
    model: MultiTaskModel
    read = staticmethod(read_tasks_data)

    def prepare(self, kept: Path | None) -> None:
        config = self.config
        data = read_tasks_data(config) if self.data is None else self.data
        self._configs = config.task_configs
        self._monitors = {n: _monitored(n, self._configs[n], one) for n, one in data.tasks.items()}
        tell_stage(f"loading the encoder {config.encoder or ''}".rstrip())
        self.model = build_models(config, data)
        tell_stage("tokenizing")
        self._parts = {name: self._prepared(name, one) for name, one in data.tasks.items()}
        self._mixed = self._mixture()
        arrays = [self._mixed.packed.token_ids, self._mixed.packed.lengths]
        arrays += [np.asarray(parts["train"].right) for parts in self._parts.values()]
        sha256 = sha256_of_arrays(*arrays)
        hashes = data.hashes | {"data_sha256": sha256}
        if kept is not None:
            changed_data(kept, hashes, config.allow_config_change)
        options = [getattr(config, key) for key in _OF_THE_ORDER]
        options.append(config.epochs if config.sampling == ANNEALED else 0)
        self.order = order_of(sha256, config.strategy == TPU, *options)
        plans = [self._plan(epoch) for epoch in range(config.epochs)]
        self._steps = [len(plan) for plan in plans]
        lengths = self._mixed.packed.lengths
        self._tokens = [int(lengths[np.concatenate(plan)].sum()) for plan in plans]
        compile_models(self.model, config, data, sum(self._steps))
        self.report = self._report(data, plans[0])
        self.report |= {**hashes, "warnings": list(self.log.warnings)}
        self.log.line(_lines(self.report))

    def _prepared(self, name: str, data: RunData) -> dict[str, Any]:
        task, model = finetuned_task(self._configs[name].task), self.model.models[name]
        parts = {part: task.prepare(model, of, data.glue) for part, of in data.parts.items()}
        parts["train"] = parts["train"].trained(self._configs[name])
        return parts

    def _mixture(self) -> Mixture:
        columns = {}
        for name, parts in self._parts.items():
            batching, train = self.model.models[name].batching, parts["train"]
            columns[name] = batching.as_columns(train.input.examples, train.right)
        return mixture(columns)

    def _plan(self, epoch: int) -> list[np.ndarray]:
        config = self.config
        given: dict[str, Any] = {**batch_sizes(config), "seed": config.seed}
        given["only_whole"] = config.strategy == TPU
        return self._mixed.plan(self.model.sampler, epoch, config.epochs, **given)

    def _report(self, data: TasksData, plan: list[np.ndarray]) -> dict[str, Any]:
        quotas = [
            self.model.sampler.quotas(self._mixed.counts, epoch, self.config.epochs)
            for epoch in (0, self.config.epochs - 1)
        ]
        tasks = {}
        for number, (name, one) in enumerate(data.tasks.items()):
            task = finetuned_task(self._configs[name].task)
            inputs = {part: prepared.input for part, prepared in self._parts[name].items()}
            tasks[name] = {
                "task": task.name,
                "glue": one.glue,
                "examples": examples_report(one, inputs, task),
                "drawn_in_first_epoch": quotas[0][number],
                "drawn_in_last_epoch": quotas[1][number],
            }
        weights = [np.prod(variable.shape) for variable in self.model.trainable_variables]
        return {
            "task": self.config.task,
            "tasks": tasks,
            "padding_share": padding_share(self._mixed.packed.lengths, plan),
            "steps_per_epoch": self._steps,
            "steps": sum(self._steps),
            "warmup_steps": int(self.config.warmup_fraction * sum(self._steps)),
            "parameters": int(sum(weights)),
        }

    def new_record(self, folder: Path) -> EpochRecord:
        held_out = {
            name: parts["validation"].validating(self._configs[name])
            for name, parts in self._parts.items()
            if "validation" in parts
        }
        measured = MeasuredTasks(held_out, self._monitors) if held_out else None
        kept = folder / CHECKPOINTS
        return EpochRecord(self.config, measured, self._monitor(), self._tokens, kept, self.log)

    def _monitor(self) -> str:
        name = self.config.monitor
        return MEAN if name == MEAN else f"{name}_{self._monitors[name].metric}"

    def batches(self, epoch: int, batch: int) -> Any:
        config, cut = self.config, dict[str, Any](batch_sizes(self.config))
        if config.strategy == TPU:  # it compiles each shape
            cut |= {"fixed_length": self.model.max_sequence_length, "drop_remainder": True}
        cut |= {"first_epoch": epoch, "first_batch": batch, "seed": config.seed}
        return self.model.dataset(self._mixed, **cut, shuffle=True)

    def batch_counts(self) -> Sequence[int] | None:
        return None if self.config.batch_tokens is None else self._steps

    def pieces(self) -> Mapping[str, Any]:
        return {"token_ids": pieces_of(self.model.tokenizer.vocabulary.tokens)}

    def measured(self, folder: Path) -> dict[str, Any]:
        found: dict[str, dict[str, Any]] = {"validation": {}, "test": {}}
        for name, parts in self._parts.items():
            kind = type(self.model.models[name])
            model = kind.from_pretrained(folder / name, dtype=self.config.precision)
            for part, examples in held_out(parts):
                found[part][name] = examples.measured(model)
        return {part: task_metrics(one, self._monitors) for part, one in found.items() if one}


def build_models(config: MultiTaskConfig, data: TasksData) -> MultiTaskModel:
    """Creates the models of a run on one encoder, not compiled."""
    models: dict[str, Any] = {}
    for name, own in config.task_configs.items():
        if not models:
            models[name] = build_model(own, data.tasks[name])
            continue
        first = next(iter(models.values()))
        models[name] = model_on(first.encoder, first.tokenizer, own, data.tasks[name])
    given = (config.sampling, config.temperature, config.loss_weights, config.task_adapters)
    model = MultiTaskModel(models, *given)
    model.annealing_epochs = config.epochs
    return model


def compile_models(
    model: MultiTaskModel, config: MultiTaskConfig, data: TasksData, total_steps: int
) -> None:
    """Compiles the model with AdamW and the losses of the tasks."""
    configs = config.task_configs
    peak_rate = next(iter(configs.values())).peak_rate
    found = {name: loss_of(configs[name], data.tasks[name]) for name in configs}
    for one in model.models.values():
        one.compile()  # a task that reads is evaluated with its loss
    model.compile(
        optimizer_of(config, peak_rate, total_steps),
        {name: loss for name, loss in found.items() if loss is not None},
        steps_per_execution=config.steps_per_execution,
    )


def _monitored(name: str, config: Any, data: RunData) -> Monitored:
    metric = monitored_metric(config, data)
    if metric in losses():  # the mean over tasks would be of no use
        raise ValueError(
            f"tasks.{name}: `monitor` must be a metric that rises. Received: monitor={metric!r}"
        )
    return Monitored(metric, finetuned_task(config.task).metric_scale)


def _lines(report: dict[str, Any]) -> str:
    lines = []
    for name, about in report["tasks"].items():
        drawn = f"{about['drawn_in_first_epoch']} drawn in the first epoch"
        if about["drawn_in_last_epoch"] != about["drawn_in_first_epoch"]:
            drawn += f", {about['drawn_in_last_epoch']} in the last"
        lines.append(f"{name} ({about['task']}): {drawn}")
        lines += [f"  {line}" for line in examples_lines(about["examples"])]
    lines.append(
        f"steps: {report['steps']} ({report['warmup_steps']} of warm-up); "
        f"padding: {report['padding_share']:.1%} of the batches"
    )
    lines.append(f"parameters: {report['parameters']:,}")
    return "\n".join(lines)

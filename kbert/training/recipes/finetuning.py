"""Fine-tuning: a task's new head on an encoder, trained on labelled examples."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kbert.metrics.glue_names import GLUE_METRICS
from kbert.tasks.registry import finetuned_task
from kbert.training.callbacks.epoch_record import EpochRecord
from kbert.training.callbacks.state_saver import pieces_of
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.recipes.finetuned_model import build_model, compile_model
from kbert.training.recipes.recipe import EpochRecipe, held_out, run_recipe
from kbert.training.runs.run_directory import CHECKPOINTS, tell_stage
from kbert.training.runs.stopped_runs import StopSignals, changed_data
from kbert.training.runs.train_state import order_of, sha256_of_arrays, sha256_of_columns

FEATURES = "features"  # folder of the states that a frozen encoder has for the examples
# Part -> key of its hash in a run's report; tokenized examples have another hash.
_HASHES = {"train": "examples_sha256", "validation": "validation_sha256", "test": "test_sha256"}
# The input throughput is measured for about this many seconds.
_SECONDS = 1.0
_MAX_BATCHES = 200


@dataclass(frozen=True)
class RunData:
    """The examples of a run: for training, validation (or None) and test (or None).

    `labels` are the class names or tags in the model's order, None for scores, choices, questions;
    `glue` is the GLUE task whose official metrics apply, or None.
    """

    train: Any
    validation: Any
    test: Any
    labels: list[str] | None
    glue: str | None

    @property
    def parts(self) -> dict[str, Any]:
        """The parts that exist, by name."""
        every = {part: getattr(self, part) for part in _HASHES}
        return {part: examples for part, examples in every.items() if examples is not None}

    @property
    def hashes(self) -> dict[str, str]:
        """Hashes of the parts, by their keys in a run's report."""
        return {_HASHES[name]: sha256_of_columns(part) for name, part in self.parts.items()}


def read_run_data(config: RunConfig) -> RunData:
    """Reads all examples of a run and checks them against each other; errors name file and line."""
    task = finetuned_task(config.task)
    parts: dict[str, Any] = dict.fromkeys(_HASHES)
    for part in parts:
        source = task.source(config, part)
        if source is not None:
            tell_stage(f"reading {source}")
            parts[part] = task.read(config, part)
    train = parts["train"]
    if train is None:
        raise ValueError("`train` must be given. Received: train=None")
    glue = task.glue_of(config)
    data = RunData(**parts, labels=task.labels(config, train, glue), glue=glue)
    for part, examples in data.parts.items():
        task.check_part(part, examples, train, data.labels)
    return data


def start_report(
    config: RunConfig, data: RunData, model: Any, inputs: dict[str, Any], steps: list[int]
) -> dict[str, Any]:
    """Returns the report of a run before its first step, as JSON types."""
    task = finetuned_task(config.task)
    report: dict[str, Any] = {"task": config.task, "glue": data.glue}
    report["examples"] = examples_report(data, inputs, task)
    train = inputs["train"]
    weights = [np.prod(variable.shape) for variable in model.trainable_variables]
    return report | {
        "class_weights": task.class_weights(config, data.train, data.labels),
        "padding_share": train.padding_share(config),
        "steps_per_epoch": steps,
        "steps": sum(steps),
        "warmup_steps": int(config.warmup_fraction * sum(steps)),
        "parameters": int(sum(weights)),
        "input_tokens_per_second": input_speed(config, model, train),
    }


def examples_report(data: RunData, inputs: dict[str, Any], task: Any) -> dict[str, Any]:
    """Returns what is known of each part of the examples, as JSON types."""
    found: dict[str, Any] = {}
    for part, examples in data.parts.items():
        found[part] = {
            "count": len(examples),
            "source": examples.source,
            "tokens": int(inputs[part].lengths.sum()),
            "longest": int(inputs[part].lengths.max()),
            "truncated_share": float(np.mean(inputs[part].truncated)),
        }
        counts = None if data.labels is None else task.label_counts(examples, data.labels)
        if counts is not None:
            found[part]["labels"] = counts
    return found


def input_speed(config: RunConfig, model: Any, train: Any) -> float:
    """Returns the input throughput in tokens per second without padding, measured by itself."""
    tokens = 0
    first = begin = end = time.perf_counter()
    for number, inputs in enumerate(train.dataset(model, config)):
        if number == 0:
            # Tracing the graph takes time once; with a single batch, it has to count.
            begin = time.perf_counter()
            continue
        tokens += int(np.count_nonzero(inputs["padding_mask"]))
        end = time.perf_counter()
        if number == _MAX_BATCHES or end - begin > _SECONDS:
            break
    if not tokens:
        return int(train.lengths.sum()) / (begin - first)
    return tokens / (end - begin)


def report_lines(report: dict[str, Any]) -> str:
    """Returns a report as readable text."""
    lines = examples_lines(report["examples"])
    if report["class_weights"] is not None:
        shown = [f"{name} {weight:.3g}" for name, weight in report["class_weights"].items()]
        lines.append(f"class weights: {', '.join(shown)}")
    lines.append(
        f"steps: {report['steps']} ({report['warmup_steps']} of warm-up); "
        f"padding: {report['padding_share']:.1%} of the batches; "
        f"input pipeline: up to {report['input_tokens_per_second']:,.0f} tokens/s"
    )
    lines.append(f"parameters: {report['parameters']:,}")
    return "\n".join(lines)


def examples_lines(found: dict[str, Any]) -> list[str]:
    """Returns what is known of the parts of the examples as readable lines."""
    lines = []
    for part, about in found.items():
        lines.append(
            f"{part}: {about['count']} examples, {about['tokens']} tokens, the longest has "
            f"{about['longest']}; {about['truncated_share']:.1%} were cut  ({about['source']})"
        )
        if "labels" in about:
            shown = [f"{name} {count:g}" for name, count in list(about["labels"].items())[:20]]
            more = f", and {len(about['labels']) - 20} more" if len(about["labels"]) > 20 else ""
            lines.append(f"  labels: {', '.join(shown)}{more}")
    return lines


# With the examples they determine the next batch; a TPU also drops a smaller last one.
_OF_THE_ORDER = ("batch_size", "batch_tokens", "seed")


def train_once(config: RunConfig, data: RunData | None = None) -> Path:
    """Fine-tunes with one seed, whatever `seeds` and `grid` are; see `run_recipe`."""
    return run_recipe(Finetuning(config, data))


class Finetuning(EpochRecipe):
    """The recipe of a run on labelled examples."""

    config: RunConfig
    data: RunData | None
    read = staticmethod(read_run_data)
    leftovers = (*EpochRecipe.leftovers, FEATURES)

    def prepare(self, kept: Path | None) -> None:
        config = self.config
        data = read_run_data(config) if self.data is None else self.data
        self.glue = data.glue
        task = finetuned_task(config.task)
        self._monitor = monitored_metric(config, data)
        # Its errors must come before the encoder is loaded.
        task.class_weights(config, data.train, data.labels)
        task.loss(config, data.train)
        tell_stage(f"loading the encoder {config.encoder or ''}".rstrip())
        self.model = build_model(config, data)
        tell_stage("tokenizing")
        parts = {name: task.prepare(self.model, of, data.glue) for name, of in data.parts.items()}
        parts["train"] = parts["train"].trained(config)
        self._parts: dict[str, Any] = parts
        inputs = {name: part.input for name, part in parts.items()}
        packed = inputs["train"].packed
        sha256 = sha256_of_arrays(packed.token_ids, packed.lengths, parts["train"].right)
        hashes = data.hashes | {"data_sha256": sha256}
        if kept is not None:
            changed_data(kept, hashes, config.allow_config_change)
        options = [getattr(config, key) for key in _OF_THE_ORDER]
        self.order = order_of(sha256, config.strategy == "tpu", *options)
        self._steps = inputs["train"].steps(config)
        compile_model(self.model, config, data, sum(self._steps))
        self.report = start_report(config, data, self.model, inputs, self._steps)
        self.report |= {**hashes, "warnings": list(self.log.warnings)}
        self.log.line(report_lines(self.report))

    def fit(self, folder: Path, stop: StopSignals) -> None:
        config, encoder = self.config, self.model.encoder
        if config.features is not None:
            encoder.feature_cache = config.feature_cache or folder / FEATURES
        super().fit(folder, stop)
        if config.features is not None:
            encoder.feature_cache = None

    def new_record(self, folder: Path) -> EpochRecord:
        validation = self._parts.get("validation")
        validation = None if validation is None else validation.validating(self.config)
        tokens, kept = int(self._parts["train"].input.lengths.sum()), folder / CHECKPOINTS
        return EpochRecord(self.config, validation, self._monitor, tokens, kept, self.log)

    def batches(self, epoch: int, batch: int) -> Any:
        train = self._parts["train"]
        return train.input.dataset(self.model, self.config, train.right, epoch, batch)

    def batch_counts(self) -> Sequence[int] | None:
        return None if self.config.batch_tokens is None else self._steps

    def pieces(self) -> Mapping[str, Any]:
        return {"token_ids": pieces_of(self.model.tokenizer.vocabulary.tokens)}

    def measured(self, folder: Path) -> dict[str, Any]:
        model = type(self.model).from_pretrained(folder, dtype=self.config.precision)
        return {name: part.measured(model) for name, part in held_out(self._parts)}


def monitored_metric(config: RunConfig, data: RunData) -> str:
    """Returns the metric that epochs are compared by; an unknown one is a ValueError."""
    known = finetuned_task(config.task).monitors(data.labels, data.validation)
    if config.monitor is None:
        return GLUE_METRICS[data.glue][0] if data.glue is not None else known[0]
    if config.monitor not in known:
        raise ValueError(
            f"`monitor` must be one of {', '.join(known)}. Received: monitor={config.monitor!r}"
        )
    return config.monitor

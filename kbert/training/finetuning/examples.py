"""The examples of a run, read and checked before anything is trained, and the report on them."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbert.tasks.registry import finetuned_task
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.resume.train_state import sha256_of_columns
from kbert.training.runs.run_log import tell_stage

# Part -> key of its hash in a run's report; tokenized examples have another hash.
_HASHES = {
    "train": "examples_sha256",
    "validation": "validation_sha256",
    "test": "test_sha256",
}
# The input throughput is measured for about this many seconds.
_SECONDS = 1.0
_MAX_BATCHES = 200


@dataclass(frozen=True)
class RunData:
    """The examples of a run: for training, validation (or None) and test (or None).

    Attributes:
        labels: The class names or tags in the model's order; None for scores, choices, questions.
        glue: The GLUE task whose official metrics apply, or None.
    """

    train: Any
    validation: Any
    test: Any
    labels: list[str] | None
    glue: str | None

    @property
    def parts(self) -> dict[str, Any]:
        """The parts that exist, by name."""
        every = {"train": self.train, "validation": self.validation, "test": self.test}
        return {name: examples for name, examples in every.items() if examples is not None}

    @property
    def hashes(self) -> dict[str, str]:
        """Hashes of the parts, by their keys in a run's report."""
        return {_HASHES[name]: sha256_of_columns(part) for name, part in self.parts.items()}


def read_run_data(config: RunConfig) -> RunData:
    """Reads all examples of a run and checks them against each other.

    Raises:
        ValueError: A file, a column or a label is wrong, a part is empty or has no labels, or
            single texts and pairs are mixed; the message names the file and the line.
        FileNotFoundError: A file is missing.
    """
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
    """Returns the report of a run before its first step, as a dict that can be written as JSON."""
    task = finetuned_task(config.task)
    report: dict[str, Any] = {"task": config.task, "glue": data.glue, "examples": {}}
    for part, examples in data.parts.items():
        report["examples"][part] = {
            "count": len(examples),
            "source": examples.source,
            "tokens": int(inputs[part].lengths.sum()),
            "longest": int(inputs[part].lengths.max()),
            "truncated_share": float(np.mean(inputs[part].truncated)),
        }
        counts = None if data.labels is None else task.label_counts(examples, data.labels)
        if counts is not None:
            report["examples"][part]["labels"] = counts
    train = inputs["train"]
    weights = [np.prod(variable.shape) for variable in model.trainable_variables]
    report |= {
        "class_weights": task.class_weights(config, data.train, data.labels),
        "padding_share": train.padding_share(config),
        "steps_per_epoch": steps,
        "steps": sum(steps),
        "warmup_steps": int(config.warmup_fraction * sum(steps)),
        "parameters": int(sum(weights)),
        "input_tokens_per_second": input_speed(config, model, train),
    }
    return report


def input_speed(config: RunConfig, model: Any, train: Any) -> float:
    """Returns the input throughput in tokens per second, without padding, while nothing else runs.
    """
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
    lines = []
    for part, about in report["examples"].items():
        lines.append(
            f"{part}: {about['count']} examples, {about['tokens']} tokens, the longest has "
            f"{about['longest']}; {about['truncated_share']:.1%} were cut  ({about['source']})"
        )
        if "labels" in about:
            shown = [f"{name} {count:g}" for name, count in list(about["labels"].items())[:20]]
            more = f", and {len(about['labels']) - 20} more" if len(about["labels"]) > 20 else ""
            lines.append(f"  labels: {', '.join(shown)}{more}")
    if report["class_weights"] is not None:
        shown = [f"{name} {weight:.3g}" for name, weight in report["class_weights"].items()]
        lines.append(f"class weights: {', '.join(shown)}")
    lines.append(
        f"steps: {report['steps']} ({report['warmup_steps']} of warm-up); "
        f"padding: {report['padding_share']:.1%} of the batches; "
        f"input alone: {report['input_tokens_per_second']:,.0f} tokens/s"
    )
    lines.append(f"parameters: {report['parameters']:,}")
    return "\n".join(lines)

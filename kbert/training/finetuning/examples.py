"""Reader of the examples of a run, which checks them as a whole before anything is trained."""

from dataclasses import dataclass
from typing import Any

from kbert.tasks.registry import finetuned_task
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.resume.resumed_run import sha256_of_columns
from kbert.training.runs.run_log import tell_stage

# Part -> key of its hash in a run's report; tokenized examples have another hash.
_HASHES = {
    "train": "examples_sha256",
    "validation": "validation_sha256",
    "test": "test_sha256",
}


@dataclass(frozen=True)
class RunData:
    """The examples of a run: for training, validation and test.

    Attributes:
        train: The training examples.
        validation: The validation examples, or None.
        test: The test examples, or None.
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

    Args:
        config: The run's configuration.

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

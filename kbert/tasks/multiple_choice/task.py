"""The task multiple choice: the best of K continuations of a context."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbert.data.classification.labels import required_labels
from kbert.data.classification.multiple_choice import (
    ChoiceExamples,
    check_choice_columns,
    read_choice_examples,
)
from kbert.options.configuration import wrong
from kbert.tasks.finetuned_task import TFDS, FinetunedTask


@dataclass(frozen=True)
class Choice:
    """The index of the best choice, its probability, and the probabilities of all."""

    choice: int
    score: float
    scores: list[float]
    truncated: bool | None = None


class MultipleChoiceTask(FinetunedTask):
    """The task of choosing one of K continuations."""

    name = "multiple-choice"
    model_name = "MultipleChoice"
    module = "kbert.tasks.multiple_choice.model"
    does = "chooses the text that goes best with a context"
    page = "choice"
    outputs = ("choice", "scores")
    answer_keys = ("choice", "scores")
    compared = ("accuracy", "cross_entropy")
    columns = ()
    settings = ("head", "dropout")
    averages = True
    has_one_sequence = False

    def typed_answer(self, answer: Mapping[str, Any]) -> Choice:
        cut = answer.get("truncated")
        return Choice(answer["choice"], answer["score"], answer["scores"], cut)

    def is_huggingface(self, architecture: str | None, checkpoint: Any) -> bool:
        return architecture == "BertForMultipleChoice"

    def check(self, config: Any) -> None:
        what = f"with task={self.name!r}"
        for key in ("train", "validation", "test"):
            if str(getattr(config, key)).startswith(TFDS):
                raise wrong(key, f"a file {what}", getattr(config, key))
        if config.batch_tokens is not None:
            raise wrong("batch_tokens", f"left out {what}", config.batch_tokens)
        if config.strategy == "tpu":
            expected = f"another one {what}: its batches have no fixed shapes"
            raise wrong("strategy", expected, config.strategy)

    def check_columns(self, path: str, columns: Mapping[str, str | int | None]) -> None:
        check_choice_columns(path)

    def read_file(self, path: str, config: Any, part: str) -> ChoiceExamples:
        return read_choice_examples(path, labeled=True)

    def check_part(self, part: str, examples: Any, train: Any, labels: list[str] | None) -> None:
        required_labels(examples)
        if examples.num_choices != train.num_choices:
            raise ValueError(
                f"{examples.source}: each example must have {train.num_choices} choices, as in "
                f"training. Received: {examples.num_choices}"
            )

    def inputs(self, model: Any, examples: Any) -> Any:
        from kbert.tasks.multiple_choice.inputs import ChoiceBatches

        if not isinstance(examples, ChoiceExamples):
            kind = "single texts" if examples.text_b is None else "pairs of texts"
            raise ValueError(
                f"{examples.source}: the examples must be multiple choice, as the model was "
                f"trained on. Received: {kind}"
            )
        contexts = [c for c, row in zip(examples.contexts, examples.choices) for _ in row]
        flat = [choice for row in examples.choices for choice in row]
        return ChoiceBatches(examples.contexts, examples.choices, model.pack(contexts, flat))

    def targets(self, examples: Any, labels: Sequence[str] | None) -> np.ndarray:
        return np.asarray(required_labels(examples), "int64")

    def measure_predictions(
        self, right: np.ndarray, predictions: np.ndarray, *_: Any
    ) -> dict[str, Any]:
        from kbert.metrics.glue import classification_metrics

        names = [str(i) for i in range(predictions.shape[1])]
        found = classification_metrics(right, predictions.argmax(-1), names, predictions)
        return {name: found[name] for name in self.monitors(None)}

    def measured_examples(self, path: Any, columns: Mapping[str, Any], model: Any = None) -> Any:
        return read_choice_examples(path)

    def rows(self, examples: Any) -> list[tuple[Any, ...]]:
        return [(one, *choices) for one, choices in zip(examples.contexts, examples.choices)]


TASK = MultipleChoiceTask()

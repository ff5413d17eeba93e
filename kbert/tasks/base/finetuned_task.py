"""`FinetunedTask`: base class of the tasks of `kbert train`, which fine-tune an encoder."""

from collections.abc import Mapping, Sequence
from typing import Any

from kbert.tasks.base.task import Task

TFDS = "tfds:"
SPLITS = {"train": "train", "validation": "validation", "test": "test"}


class FinetunedTask(Task):
    """A task that fine-tunes an encoder: its examples, its inputs, its metrics.

    `config` is the `RunConfig` of a run; `examples` are the return value of `read`.

    Attributes:
        settings: Keys of the configuration that are also arguments of the model's constructor.
        options: Keys of the configuration that only this task and some others have.
        averages: Whether the predictions of several models can be averaged.
        falling: Those of its metrics that are the better the smaller they are.
        has_answer_file: Whether there is an official format of a file of answers.
        fixed_length: Default sequence length of batches of one shape; None where a TPU cannot
            train the task.
    """

    is_finetuned = True
    settings: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    averages = False
    falling: tuple[str, ...] = ("cross_entropy",)
    has_answer_file = False
    fixed_length: int | None = None

    def check(self, config: Any) -> None:
        """Checks a configuration for values that this task does not support.

        Args:
            config: The configuration.

        Raises:
            ValueError: This task does not support a value.
        """

    def check_columns(self, path: str, columns: Mapping[str, str | int | None]) -> None:
        """Checks the columns of a file against its first lines.

        Args:
            path: The file.
            columns: `text_a`, `text_b` and `label`, by name or index; None where not given.

        Raises:
            ValueError: A column is missing.
        """

    def is_of_glue(self, name: str) -> bool:
        """Returns whether a GLUE task is of this kind.

        Args:
            name: The GLUE task.
        """
        return False

    def glue_of(self, config: Any) -> str | None:
        """Returns the GLUE task whose official metrics apply to a run, or None.

        Args:
            config: The configuration.
        """
        return None

    def source(self, config: Any, part: str) -> str | None:
        """Returns the source of a part of the examples, or None where there is none.

        Args:
            config: The configuration.
            part: "train", "validation" or "test".
        """
        given: str | None = getattr(config, part)
        return given

    def read(self, config: Any, part: str) -> Any:
        """Reads a part of the examples.

        Args:
            config: The configuration.
            part: "train", "validation" or "test", with a `source`.

        Raises:
            ValueError: The file is wrong; the message names the line or entry.
            FileNotFoundError: There is no such file.
        """
        given: str = getattr(config, part)
        if given.startswith(TFDS):
            name, _, split = given.removeprefix(TFDS).partition("@")
            return self.read_tfds(name, split or SPLITS[part], config, part)
        return self.read_file(given, config, part)

    def read_file(self, path: str, config: Any, part: str) -> Any:
        """Reads a file of examples.

        Args:
            path: The file.
            config: The configuration.
            part: "train", "validation" or "test".
        """
        raise NotImplementedError

    def read_tfds(self, name: str, split: str, config: Any, part: str) -> Any:
        """Reads examples from TensorFlow Datasets.

        Args:
            name: The dataset.
            split: Its split.
            config: The configuration.
            part: "train", "validation" or "test".
        """
        raise NotImplementedError

    def labels(self, config: Any, train: Any, glue: str | None) -> list[str] | None:
        """Returns the class names or tags in the model's order; None for a task without.

        Args:
            config: The configuration.
            train: The training examples.
            glue: The GLUE task, or None.
        """
        return None

    def check_part(self, part: str, examples: Any, train: Any, labels: list[str] | None) -> None:
        """Checks a part of the examples against the training examples.

        Args:
            part: "train", "validation" or "test".
            examples: Its examples.
            train: The training examples.
            labels: The class names in the model's order, or None.

        Raises:
            ValueError: They do not fit.
        """

    def label_counts(self, examples: Any, labels: Sequence[str]) -> dict[str, float] | None:
        """Returns how many examples each label has; None for a task without classes.

        Args:
            examples: Labelled examples.
            labels: The class names in the model's order.
        """
        return None

    def class_weights(
        self, config: Any, train: Any, labels: list[str] | None
    ) -> dict[str, float] | None:
        """Returns a weight for each class; None for equal weights.

        Args:
            config: The configuration.
            train: The training examples.
            labels: The class names in the model's order.
        """
        return None

    def model_settings(self, config: Any, train: Any) -> dict[str, Any]:
        """Returns arguments of the model's constructor that depend on the examples.

        Args:
            config: The configuration.
            train: The training examples.
        """
        return {}

    def reset(self, model: Any) -> None:
        """Resets what an earlier training tuned for its own weights, such as a threshold.

        Args:
            model: A model of this task.
        """

    def monitors(self, labels: Sequence[str] | None) -> list[str]:
        """Returns the metrics that epochs may be compared by, the default first.

        Args:
            labels: The class names, or None.
        """
        raise NotImplementedError

    def target_spec(self, rows: int) -> Any:
        """Returns the `tf.TensorSpec` of a batch's targets where all batches have one shape.

        Args:
            rows: Number of examples of a batch.
        """
        raise NotImplementedError

    def inputs(self, model: Any, examples: Any) -> Any:
        """Tokenizes examples, labelled or not.

        Args:
            model: A model of this task.
            examples: Its examples.

        Returns:
            An object with `lengths`, `truncated`, `steps`, `dataset` and `padding_share`, see
            `kbert.tasks.base.inputs.PackedInput`; where `averages`, with `predict` too.

        Raises:
            ValueError: The examples are of another task, or do not fit the model.
        """
        raise NotImplementedError

    def prepare(self, model: Any, examples: Any, glue: str | None = None) -> Any:
        """Tokenizes labelled examples for training and evaluation.

        Args:
            model: A model of this task.
            examples: Labelled examples.
            glue: The GLUE task whose official metrics apply, or None.

        Returns:
            An object with `input`, `right` and `measured`, see `kbert.tasks.base.prepared`.

        Raises:
            ValueError: The examples have no labels, unknown labels, or are of another task.
        """
        raise NotImplementedError

    def targets(self, examples: Any, labels: Sequence[str] | None) -> Any:
        """Returns the targets of examples, for tasks whose predictions can be averaged.

        Args:
            examples: Labelled examples.
            labels: The class names in the model's order, or None.

        Returns:
            int64 (n,) class or choice ids; float32 (n,) scores; float32 (n, C) soft labels.
        """
        raise NotImplementedError

    def measure_predictions(
        self, right: Any, predictions: Any, labels: Sequence[str] | None, glue: str | None = None
    ) -> dict[str, Any]:
        """Returns the metrics of predictions, for tasks whose predictions can be averaged.

        Args:
            right: The targets, from `targets`.
            predictions: Probabilities (n, C), or scores (n,).
            labels: The class names, or None.
            glue: The GLUE task whose official metrics apply, or None.
        """
        raise NotImplementedError

    def measured_examples(self, path: Any, columns: Mapping[str, Any], model: Any = None) -> Any:
        """Reads a file of examples to evaluate a finished model on.

        Args:
            path: The file.
            columns: The columns `text_a`, `text_b` and `label`, as far as they are known.
            model: The model; needed where reading the file depends on its tags.
        """
        raise NotImplementedError

    def measure(self, model: Any, examples: Any) -> tuple[dict[str, Any], dict[str, str]]:
        """Evaluates a model.

        Args:
            model: The model.
            examples: Labelled examples.

        Returns:
            The metrics; and for a task with an answer file id -> answer, else an empty dict.
        """
        return self.prepare(model, examples).measured(model), {}

    def rows(self, examples: Any) -> list[tuple[Any, ...]]:
        """Returns the inputs of a model's main signature for each example.

        Args:
            examples: Examples.
        """
        raise NotImplementedError

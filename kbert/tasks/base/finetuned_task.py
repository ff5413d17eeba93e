"""`FinetunedTask`: a task that `kbert train` puts on an encoder."""

from collections.abc import Mapping, Sequence
from typing import Any

from kbert.tasks.base.task import Task

TFDS = "tfds:"
SPLITS = {"train": "train", "validation": "validation", "test": "test"}


def wrong(key: str, expected: str, value: Any) -> ValueError:
    """Returns the error for a value of a configuration that does not go with the others.

    Args:
        key: The key.
        expected: What the value must be.
        value: The value.
    """
    return ValueError(f"`{key}` must be {expected}. Received: {key}={value!r}")


class FinetunedTask(Task):
    """A task that is trained on an encoder: its examples, its inputs, its metrics.

    `config` is the `RunConfig` of a run; `examples` are what `read` returns.

    Attributes:
        settings: Keys of the configuration that the model's constructor takes too.
        options: Keys of the configuration that only this task and some others have.
        averages: Whether the predictions of several models can be averaged.
        has_answer_file: Whether there is an official format of a file of answers.
        fixed_length: Tokens of an input in batches of one shape, by default; None where a TPU
            cannot train the task.
    """

    is_finetuned = True
    settings: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    averages = False
    has_answer_file = False
    fixed_length: int | None = None

    def check(self, config: Any) -> None:
        """Checks a configuration for what this task cannot do.

        Args:
            config: The configuration.

        Raises:
            ValueError: A value is impossible for this task.
        """

    def check_columns(self, path: str, columns: Mapping[str, str | int | None]) -> None:
        """Checks the columns of a file, as far as its first lines show them.

        Args:
            path: The file.
            columns: `text_a`, `text_b` and `label`, by name or index; None where not given.

        Raises:
            ValueError: A column is missing.
        """

    def is_of_glue(self, name: str) -> bool:
        """Returns whether a task of GLUE is of this kind.

        Args:
            name: The task of GLUE.
        """
        return False

    def glue_of(self, config: Any) -> str | None:
        """Returns the GLUE task whose official metrics apply to a run, or None.

        Args:
            config: The configuration.
        """
        return None

    def source(self, config: Any, part: str) -> str | None:
        """Returns what a part of the examples is read from, or None where there is none.

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
            ValueError: The file is wrong; the message names the place in it.
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
            name: The data set.
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
        """Checks a part of the examples against those of training.

        Args:
            part: "train", "validation" or "test".
            examples: Its examples.
            train: The training examples.
            labels: From `labels`.

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
        """Returns a weight for each class; None where all weigh the same.

        Args:
            config: The configuration.
            train: The training examples.
            labels: The class names in the model's order.
        """
        return None

    def model_settings(self, config: Any, train: Any) -> dict[str, Any]:
        """Returns arguments of the model's constructor that the examples decide.

        Args:
            config: The configuration.
            train: The training examples.
        """
        return {}

    def reset(self, model: Any) -> None:
        """Forgets what an earlier training tuned for its own weights, such as a threshold.

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
        """Returns the specification of a batch's targets where all batches have one shape.

        Args:
            rows: Examples of a batch.
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
            ValueError: The examples are of another task, or of another shape than the model's.
        """
        raise NotImplementedError

    def prepare(self, model: Any, examples: Any, glue: str | None = None) -> Any:
        """Tokenizes labelled examples, to be trained and measured on.

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
        """Returns what a model learns to predict; of tasks whose predictions can be averaged.

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
        """Returns the metrics of predictions; of tasks whose predictions can be averaged.

        Args:
            right: From `targets`.
            predictions: Probabilities (n, C), or scores (n,).
            labels: The class names, or None.
            glue: The GLUE task whose official metrics apply, or None.
        """
        raise NotImplementedError

    def measured_examples(self, path: Any, columns: Mapping[str, Any], model: Any = None) -> Any:
        """Reads a file of examples that a finished model is measured on.

        Args:
            path: The file.
            columns: Those of `text_a`, `text_b` and `label` that are known.
            model: The model; needed where its tags decide how the file is read.
        """
        raise NotImplementedError

    def measure(self, model: Any, examples: Any) -> tuple[dict[str, Any], dict[str, str]]:
        """Measures a model.

        Args:
            model: The model.
            examples: Labelled examples.

        Returns:
            The metrics; and for a task with a format of predictions the answer of each id.
        """
        return self.prepare(model, examples).measured(model), {}

    def rows(self, examples: Any) -> list[tuple[Any, ...]]:
        """Returns what a model's main signature reads of each example.

        Args:
            examples: Examples.
        """
        raise NotImplementedError

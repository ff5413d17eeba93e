"""`FinetunedTask`: what a task of `kbert train` on an encoder adds to a `Task`."""

from collections.abc import Mapping, Sequence
from typing import Any

from kbert.data.hf_dataset import hf_file
from kbert.tasks.task import Task

TFDS, HF = DATASETS = ("tfds:", "hf:")


class FinetunedTask(Task):
    """A task of `kbert train`, which fine-tunes an encoder: its examples, inputs and metrics.

    Arguments of its methods: `config` is the `RunConfig` of a run; `part` "train", "validation" or
    "test"; `examples` what `read` returned, and `train` those of training; `labels` the class names
    in the model's order, or None; `glue` the GLUE task whose official metrics apply, or None.
    Methods that raise NotImplementedError have no default, as in `Task`.

    Attributes:
        settings: Keys of the configuration that are also arguments of the model's constructor.
        columns, options: Keys of the configuration that only this task and some others have.
        reads_tags: Whether an example is a list of words with a tag each.
        metric_scale: What its metrics are at most, those that rise.
        averages: Whether the predictions of several models can be averaged.
        falling: Those of its metrics that are better the smaller they are.
        has_answer_file: Whether there is an official format of a file of answers.
        has_thresholds: Whether its models have thresholds that examples can tune.
        has_one_sequence: Whether a row is one sequence, so that tasks can share a batch.
        reading: Keys of the configuration, besides columns, by which `read_file` reads.
        fixed_length: Default length of batches of one shape; None where no TPU trains the task.
        target_dtype, target_shape: Of one example's target in such batches.
        compared: Metrics that epochs may be compared by, the default first.
    """

    is_finetuned = True
    settings: tuple[str, ...] = ()
    columns: tuple[str, ...] = ("text_a", "text_b", "label")
    options: tuple[str, ...] = ()
    reads_tags = False
    metric_scale = 1.0
    averages = False
    falling: tuple[str, ...] = ("cross_entropy",)
    has_answer_file = False
    has_thresholds = False
    has_one_sequence = True
    reading: tuple[str, ...] = ()
    fixed_length: int | None = None
    target_dtype = "int32"
    target_shape: tuple[int, ...] = ()
    compared: tuple[str, ...]

    def check(self, config: Any) -> None:
        """Raises a ValueError for values of a configuration that this task does not support."""

    def check_columns(self, path: str, columns: Mapping[str, str | int | None]) -> None:
        """Raises a ValueError if the first lines of a file lack `text_a`, `text_b` or `label`.

        The columns are given by name or index; None is for those that are looked for. Keys of
        `reading` may be among them.
        """

    def is_of_glue(self, name: str) -> bool:
        """Returns whether a GLUE task is of this kind."""
        return False

    def check_glue(self, config: Any, part: str) -> None:
        """Raises an error if a part comes from GLUE, and its split or file is not there."""

    def glue_of(self, config: Any) -> str | None:
        """Returns the GLUE task whose official metrics apply to a run, or None."""
        return None

    def source(self, config: Any, part: str) -> str | None:
        """Returns the source of a part of the examples, or None where there is none."""
        return getattr(config, part)

    def read(self, config: Any, part: str) -> Any:
        """Reads a part of the examples that has a `source`.

        Raises:
            ValueError: The file is wrong; the message names the line or entry.
            FileNotFoundError: There is no such file.
        """
        given: str = getattr(config, part)
        if given.startswith(TFDS):
            name, _, split = given.removeprefix(TFDS).partition("@")
            return self.read_tfds(name, split or part, config, part)
        if given.startswith(HF):
            with hf_file(given.removeprefix(HF), part, self.reads_tags) as file:
                return self.read_file(file, config, part)
        return self.read_file(given, config, part)

    def read_file(self, path: str, config: Any, part: str) -> Any:
        """Reads a file of examples."""
        raise NotImplementedError

    def read_tfds(self, name: str, split: str, config: Any, part: str) -> Any:
        """Reads a split of a dataset of TensorFlow Datasets."""
        raise NotImplementedError

    def labels(self, config: Any, train: Any, glue: str | None) -> list[str] | None:
        """Returns the class names or tags in the model's order; None for a task without."""
        return None

    def check_part(self, part: str, examples: Any, train: Any, labels: list[str] | None) -> None:
        """Raises a ValueError if a part of the examples does not fit those of training."""

    def label_counts(self, examples: Any, labels: Sequence[str]) -> dict[str, float] | None:
        """Returns how many examples each label has; None for a task without classes."""
        return None

    def class_weights(
        self, config: Any, train: Any, labels: list[str] | None
    ) -> dict[str, float] | None:
        """Returns a weight for each class; None for equal weights."""
        return None

    def weighted_loss(self, weights: Mapping[str, float]) -> Any:
        """Returns the task's loss with the weights of `class_weights`."""
        from kbert.optimization.losses import SoftmaxCrossEntropy

        return SoftmaxCrossEntropy(list(weights.values()))

    def model_settings(self, config: Any, train: Any) -> dict[str, Any]:
        """Returns arguments of the model's constructor that depend on the examples."""
        return {}

    def loss(self, config: Any, train: Any) -> Any:
        """Returns the loss that the options and examples ask for; None for the model's own."""
        return None

    def reset(self, model: Any) -> None:
        """Resets what an earlier training tuned for its own weights, such as a threshold."""

    def monitors(self, labels: Sequence[str] | None, validation: Any = None) -> list[str]:
        """Returns the metrics that epochs may be compared by, the default first."""
        return list(self.compared)

    def target_spec(self, rows: int, labels: Sequence[str] | None) -> Any:
        """Returns the `tf.TensorSpec` of the targets of `rows` examples in batches of one shape."""
        import tensorflow as tf

        return tf.TensorSpec((rows, *self.target_shape), self.target_dtype)

    def inputs(self, model: Any, examples: Any) -> Any:
        """Tokenizes examples, labelled or not, for a model of this task.

        The result is a `PackedInput` or has its methods, `predict` only where `averages`.

        Raises:
            ValueError: The examples are of another task, or do not fit the model.
        """
        raise NotImplementedError

    def prepare(self, model: Any, examples: Any, glue: str | None = None) -> Any:
        """Tokenizes labelled examples, to train and evaluate a model on, as a `Prepared`.

        Raises:
            ValueError: The examples have no labels, unknown labels, or are of another task.
        """
        from kbert.tasks.inputs import Prepared

        labels = getattr(model, "labels", None)
        inputs, targets = self.inputs(model, examples), self.targets(examples, labels)
        return Prepared(inputs, targets, lambda y, p: self.measure_predictions(y, p, labels, glue))

    def targets(self, examples: Any, labels: Sequence[str] | None) -> Any:
        """Returns targets of labelled examples, where `averages`: (n,), or soft labels (n, C)."""
        raise NotImplementedError

    def measure_predictions(
        self, right: Any, predictions: Any, labels: Any, glue: Any = None, thresholds: Any = None
    ) -> dict[str, Any]:
        """Returns the metrics of probabilities (n, C), or scores (n,), where `averages`.

        `thresholds` is what `thresholds` returns of the model.
        """
        raise NotImplementedError

    def thresholds(self, model: Any) -> Any:
        """Returns the probability from which on each label counts, (C,), or None."""
        return None

    def measured_examples(self, path: Any, columns: Mapping[str, Any], model: Any = None) -> Any:
        """Reads a file of examples to evaluate a finished model on, whose tags may matter.

        `columns` are those of `check_columns` and keys of `reading`, as far as they are known.
        """
        raise NotImplementedError

    def measure(self, model: Any, examples: Any) -> tuple[dict[str, Any], dict[str, str]]:
        """Evaluates a model; returns metrics, and id -> answer of a task with an answer file."""
        return self.prepare(model, examples).measured(model), {}

    def rows(self, examples: Any) -> list[tuple[Any, ...]]:
        """Returns the inputs of a model's main signature for each example."""
        raise NotImplementedError

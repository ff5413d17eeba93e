"""`Task`: everything that depends on the task, so that no other code asks for types of models."""

import importlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any


class Task:
    """Names and descriptions of a task's models; each task has one object.

    Its module imports no TensorFlow, so that a configuration is checked before that is loaded:
    methods that need TensorFlow import it.

    Attributes:
        name: The task in configurations and on the command line.
        model_name: The class of its models, as named in saved folders and exports.
        module: The module of that class.
        does: The predicate of the sentence "it ..." on a model, for the card of an export.
        page: The form of its inputs and answers on the page of the local server.
        has_windows: Whether a model reads a long text in overlapping windows.
        has_nbest: Whether callers may ask for more alternatives of an answer.
        outputs: Outputs of its main signature that no other task has together.
        answer_keys: Keys of its answers as JSON that no other task has together.
        pictures: What `kbert plot` can draw of an answer, the default first.
        is_finetuned: Whether `kbert train` puts it on an encoder.
    """

    name: str
    model_name: str
    module: str
    does: str
    page: str
    outputs: tuple[str, ...]
    answer_keys: tuple[str, ...]
    has_windows = False
    has_nbest = False
    pictures: tuple[str, ...] = ("attention",)
    is_finetuned = False

    def model_class(self) -> Any:
        """Returns the class of the task's models."""
        return getattr(importlib.import_module(self.module), self.model_name)

    @property
    def answers(self) -> Any:
        """The task's module of `json_answer`, `typed_answer` and perhaps `show_answer`."""
        return importlib.import_module(f"{self.module.rpartition('.')[0]}.answers")

    def has_outputs(self, names: Collection[str]) -> bool:
        """Returns whether outputs are those of the task's main signature.

        Args:
            names: The names of the outputs.
        """
        return set(self.outputs) <= set(names)

    def is_answer(self, answer: Mapping[str, Any]) -> bool:
        """Returns whether an answer as JSON is one of this task.

        Args:
            answer: The answer.
        """
        return set(self.answer_keys) <= set(answer)

    def is_huggingface(self, architecture: str | None, checkpoint: Any) -> bool:
        """Returns whether a checkpoint of another package is a model of this task.

        Args:
            architecture: The transformers class named in its configuration, or None.
            checkpoint: A `kbert.checkpoints.arrays.checkpoint.Checkpoint`.
        """
        return False

    def give_more(self, model: Any, nbest: int) -> None:
        """Sets the number of alternatives in a model's answers, where `has_nbest`.

        Args:
            model: A model of this task.
            nbest: The number of alternatives.

        Raises:
            ValueError: There are fewer alternatives.
        """
        raise NotImplementedError

    def attention(self, model: Any, texts: Sequence[str]) -> tuple[list[str], list[Any]]:
        """Computes the attention probabilities of one text, or one pair.

        Args:
            model: A model of this task.
            texts: One text or two; longer texts than the model reads are truncated.

        Returns:
            The T tokens, special ones included, and for each layer the probabilities (N, T, T).

        Raises:
            ValueError: The task reads one text, and there are two.
        """
        from kbert.tasks.base.text_attention import attention_of_text

        return attention_of_text(model, texts)

    def text_columns(self, config: Any) -> tuple[str | int | None, ...]:
        """Returns the text columns of a run's training, by name or index.

        Args:
            config: The configuration of the run.
        """
        return ()

    def usual_columns(self, count: int) -> list[list[str]]:
        """Returns the text columns to look for where none are given.

        Args:
            count: Number of texts of a row.
        """
        return []

    def request_words(self, longest: int) -> int:
        """Returns the number of words of the long texts of sample requests.

        Args:
            longest: The maximum sequence length of the model.
        """
        # Two windows of a model that reads in windows.
        return longest * 3 // 2 if self.has_windows else longest

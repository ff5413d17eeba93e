"""`Task`: all that is a task's own, so that nothing else asks what a model or an example is."""

import importlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any


class Task:
    """How a task's models are named and described; each task has one object.

    Its module imports no TensorFlow, so that a configuration is checked before that is loaded: what
    needs it is imported by the method that uses it.

    Attributes:
        name: The task in configurations and on the command line.
        model_name: The class of its models, as saved folders and exports call it.
        module: The module of that class.
        does: What a model does, after "it", for the card of an export.
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
            architecture: The class of transformers that its configuration names, or None.
            checkpoint: A `kbert.checkpoints.arrays.checkpoint.Checkpoint`.
        """
        return False

    def give_more(self, model: Any, nbest: int) -> None:
        """Makes a model give so many alternatives of an answer, where `has_nbest`.

        Args:
            model: A model of this task.
            nbest: The alternatives.

        Raises:
            ValueError: There are not so many.
        """
        raise NotImplementedError

    def attention(self, model: Any, texts: Sequence[str]) -> tuple[list[str], list[Any]]:
        """Computes what the tokens of one text, or of one pair, attend to.

        Args:
            model: A model of this task.
            texts: One text or two; what is longer than the model reads is cut.

        Returns:
            The T tokens, special ones included, and for each layer the probabilities (N, T, T).

        Raises:
            ValueError: The task reads one text, and there are two.
        """
        from kbert.tasks.base.text_attention import attention_of_text

        return attention_of_text(model, texts)

    def text_columns(self, config: Any) -> tuple[str | int | None, ...]:
        """Returns the columns of texts that a run was trained with, by name or index.

        Args:
            config: The configuration of the run.
        """
        return ()

    def usual_columns(self, count: int) -> list[list[str]]:
        """Returns columns of texts that are looked for where none are given.

        Args:
            count: The texts of a row.
        """
        return []

    def request_words(self, longest: int) -> int:
        """Returns how many words the long texts of sample requests have.

        Args:
            longest: The tokens that a model reads at a time.
        """
        # Two windows of a model that reads in windows.
        return longest * 3 // 2 if self.has_windows else longest

"""`Task`: everything that depends on the task, so that no other code asks for types of models."""

import importlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any


class Task:
    """Names and descriptions of a task's models; each task has one object.

    Its module imports no TensorFlow, so that a configuration is checked before that is loaded:
    methods that need TensorFlow import it. A method that raises NotImplementedError has no default:
    it is asked of tasks of which the attributes say that they have it.

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
        answer_list: Key of the list in an answer as JSON, where a model's own answer is that list.
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
    answer_list: str | None = None
    pictures: tuple[str, ...] = ("attention",)
    is_finetuned = False

    def model_class(self) -> Any:
        """Returns the class of the task's models."""
        return getattr(importlib.import_module(self.module), self.model_name)

    def has_outputs(self, names: Collection[str]) -> bool:
        """Returns whether outputs are those of the task's main signature."""
        return set(self.outputs) <= set(names)

    def is_answer(self, answer: Mapping[str, Any]) -> bool:
        """Returns whether an answer as JSON is one of this task."""
        return set(self.answer_keys) <= set(answer)

    def json_answer(self, plain: dict[str, Any]) -> dict[str, Any]:
        """Returns the outputs for one row, from `plain_values`, as JSON has the answer."""
        return plain

    def typed_answer(self, answer: Mapping[str, Any]) -> Any:
        """Returns an answer, from `json_answer`, as an object of the task's class."""
        raise NotImplementedError

    def show_answer(self, row: tuple[str, ...], answer: Mapping[str, Any], console: Any) -> None:
        """Prints the last of the texts that a model read, with what was found in it.

        Raises:
            ValueError: The answers of the task are no places in a text.
        """
        raise ValueError("`--show` must be left out for a model that finds no places in a text.")

    def is_huggingface(self, architecture: str | None, checkpoint: Any) -> bool:
        """Returns whether a `Checkpoint` of another package is a model of this task.

        `architecture` is the transformers class named in its configuration, as BERT's, or None.
        """
        return False

    def give_more(self, model: Any, nbest: int) -> None:
        """Sets the number of alternatives in a model's answers, where `has_nbest`.

        Raises:
            ValueError: There are fewer alternatives.
        """
        raise NotImplementedError

    def attention(self, model: Any, texts: Sequence[str]) -> tuple[list[str], list[Any]]:
        """Returns the T tokens of a text, or a pair, and each layer's attention (N, T, T) to them.

        Raises:
            ValueError: The task reads one text, and there are two.
        """
        import tensorflow as tf

        from kbert.text.sequences.packing import pack

        vocabulary = model.tokenizer.vocabulary
        segments = [model.tokenizer.tokenize(tf.constant([text])) for text in texts]
        packed = pack(segments, vocabulary, model.max_sequence_length)
        inputs = {"token_ids": packed.token_ids, "segment_ids": packed.segment_ids}
        scores = model.encoder.attention_scores(inputs)
        tokens = [vocabulary.tokens[i] for i in packed.token_ids[0].numpy().tolist()]
        return tokens, [tf.cast(layer[0], tf.float32).numpy() for layer in scores]

    def text_columns(self, config: Any) -> tuple[str | int | None, ...]:
        """Returns the text columns of a run's training, by name or index."""
        return ()

    def usual_columns(self, count: int) -> list[list[str]]:
        """Returns the text columns to look for where none are given, for rows of `count` texts."""
        return []

    def request_words(self, longest: int) -> int:
        """Returns the words of the long texts of sample requests, for a longest sequence."""
        return longest * 3 // 2 if self.has_windows else longest  # two windows

"""Question answering: a question and a text of any length in, spans of the text out."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from kbert.models.encoder import Encoder
from kbert.pipelines.signatures import Signature, question_specs
from kbert.pipelines.window_batching import WindowBatching
from kbert.tasks.answers import plain_values
from kbert.tasks.question_answering.head import SpanExtraction
from kbert.tasks.question_answering.inputs import (
    Answers,
    QuestionInputs,
    read_answers,
    read_question_inputs,
    span_targets,
)
from kbert.tasks.question_answering.task import TASK
from kbert.text.sequences.packing import Windows, WindowTokens
from kbert.text.sequences.spans import WindowSpans, cut_spans, is_span, request_spans, window_spans
from kbert.text.tokenizer import Tokenizer

_PLACES = ("start", "end", "start_byte", "end_byte")
# `null_score` where the text has no token, so no span.
_NO_SPAN_AT_ALL = 1e4


class Boundaries(NamedTuple):
    """Probabilities of the first and last token of an answer.

    Attributes:
        tokens: the n tokens of the text.
        start: (n,), the probability of each token as the start, over the tokens of the text.
        end: (n,), its probability as the end.
        span: first and last token of the best answer, or None.
    """

    tokens: list[str]
    start: np.ndarray
    end: np.ndarray
    span: tuple[int, int] | None


@keras.saving.register_keras_serializable("kbert")
class QuestionAnswerer(SpanExtraction):
    """Answers a question with a span of a text, or says that the text has no answer.

    The text is cut into overlapping windows; see `kbert.text.sequences.packing` and
    `kbert.text.sequences.spans`. `x` in `fit` and `predict` is a dict or table with `question` and
    `context`, or a tuple of two lists; `predict` returns a dict a question, with what `answer`
    returns as NumPy values. `y` has a list of answers for each question, perhaps none: (text,
    start), or {"text", "answer_start"} as in SQuAD.

    Args:
        encoder: an encoder such as `Bert`.
        tokenizer: the tokenizer of the encoder's vocabulary.
        max_sequence_length: tokens of a window, question and special ones included.
        stride: tokens that neighbouring windows share, as in Hugging Face tokenizers.
        max_question_length: longer questions are cut, in tokens.
        max_answer_length: longest answer, in tokens.
        nbest: number of answers that are returned.
        null_threshold: `null_score` above which there is no answer; None: there always is one.

    Raises:
        ValueError: tokenizer or sizes do not fit the encoder or each other.
    """

    huggingface_architecture = "BertForQuestionAnswering"
    default_sequence_length = 384
    arguments = (
        *("max_sequence_length", "stride", "max_question_length"),
        *("max_answer_length", "nbest", "null_threshold"),
    )
    batching_type = WindowBatching
    needs_pooler = False
    has_questions = True
    graph_settings = ("max_answer_length", "nbest", "null_threshold")

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer,
        max_sequence_length: int = 384,
        stride: int = 128,
        max_question_length: int = 64,
        max_answer_length: int = 30,
        nbest: int = 5,
        null_threshold: float | None = None,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("name", "question_answerer")
        super().__init__(encoder, **kwargs)
        for name, value in (("max_answer_length", max_answer_length), ("nbest", nbest)):
            if value < 1:
                raise ValueError(f"`{name}` must be at least 1. Received: {name}={value}")
        self.tokenizer = tokenizer
        self.max_sequence_length = max_sequence_length
        self.stride = stride
        self.max_question_length: int = max_question_length
        self.max_answer_length = max_answer_length
        self.nbest = nbest
        self.null_threshold = null_threshold
        self.batching.check()

    def huggingface_config(self) -> dict[str, Any]:
        """Returns the task's entries of a Hugging Face configuration."""
        return {}

    def answer(self, question: Any, context: Any) -> dict[str, Any]:
        """Answers questions (B,) on contexts (B,), as graph code.

        Args:
            question: string (B,).
            context: string (B,), the text of each question.

        Returns:
            `answer` string, `score` float32, the answer's probability among all spans of all
            windows and "no answer"; `start`, `end` int32, code points of the context; `start_byte`,
            `end_byte` int32; `null_score` float32, the logit of "no answer" less that of the best
            span; `has_answer` bool; each (B,). `nbest_answer`, `nbest_score`, `nbest_start`,
            `nbest_end` (B, n), best first. `truncated` bool (B,), whether the question was cut.
            Without an answer, `answer` is empty, `start` to `end_byte` are 0, and `score` is the
            probability of "no answer". Entries of the list without a span are empty, with score 0.
        """
        offsets = self.tokenizer.tokenize_with_offsets(context)
        questions = self.tokenizer.tokenize(question)
        found = self._spans(offsets, questions)
        filled = is_span(found.score)
        texts = cut_spans(context, offsets, found.first, found.last, filled)
        null_score = tf.where(filled[:, 0], found.null - found.score[:, 0], _NO_SPAN_AT_ALL)
        has_answer = filled[:, 0]
        if self.null_threshold is not None:
            has_answer &= null_score <= self.null_threshold
        nothing = tf.exp(found.null - found.total)

        def best(column: tf.Tensor, otherwise: Any) -> tf.Tensor:
            return tf.where(has_answer, column[:, 0], otherwise)

        return {
            "answer": best(texts.text, ""),
            "score": best(found.probability, nothing),
            **{name: best(getattr(texts, name), 0) for name in _PLACES},
            "null_score": null_score,
            "has_answer": has_answer,
            "nbest_answer": texts.text,
            "nbest_score": found.probability,
            "nbest_start": texts.start,
            "nbest_end": texts.end,
            "truncated": questions.row_lengths() > self.max_question_length,
        }

    def _spans(self, offsets: Any, questions: Any) -> Any:
        """Returns the best spans of each request."""
        count = self.nbest

        def read(logits: Any, tokens: WindowTokens, windows: Windows) -> Sequence[Any]:
            wide = tf.cast(logits, tf.float32)
            spans = window_spans(wide, tokens.position, tokens.owned, self.max_answer_length, count)
            return (*spans, windows.row)

        by_span = [tf.TensorSpec((None, count), t) for t in (tf.float32, tf.int32, tf.int32)]
        by_window = [tf.TensorSpec((None,), t) for t in (tf.float32, tf.float32, tf.int32)]
        outputs = [*by_span, *by_window]
        *columns, row = self.batching.over_windows(offsets, questions, read, outputs)
        rows = tf.cast(offsets.token_ids.nrows(), tf.int32)
        return request_spans(WindowSpans(*columns), row, rows, count)

    def boundaries(self, question: str, context: str) -> Boundaries:
        """Returns the probabilities of an answer's first and last token, for display.

        Args:
            question: one question.
            context: its text.
        """
        offsets = self.tokenizer.tokenize_with_offsets(tf.constant([context]))

        def read(logits: Any, tokens: WindowTokens, windows: Windows) -> Sequence[Any]:
            owned, wide = tokens.owned, tf.cast(logits, tf.float32)
            return tf.boolean_mask(tokens.position, owned), tf.boolean_mask(wide, owned)

        outputs = [tf.TensorSpec((None,), tf.int32), tf.TensorSpec((None, 2), tf.float32)]
        asked = self.tokenizer.tokenize(tf.constant([question]))
        place, logits = self.batching.over_windows(offsets, asked, read, outputs)
        ordered = tf.gather(logits, tf.argsort(place))
        shares = tf.nn.softmax(ordered, axis=0).numpy()
        ids = offsets.token_ids.values.numpy().tolist()
        found = self._spans(offsets, asked)
        is_found = bool(is_span(found.score)[0, 0])
        span = (int(found.first[0, 0]), int(found.last[0, 0])) if is_found else None
        names = self.tokenizer.vocabulary.tokens
        return Boundaries([names[i] for i in ids], shares[:, 0], shares[:, 1], span)

    def signatures(self) -> dict[str, Signature]:
        """Returns the function of an export and the specs of its inputs."""
        return {"serving_default": (self.answer, question_specs())}

    def answers(self, x: Any) -> list[dict[str, Any]]:
        """Answers questions, and returns plain Python values.

        Args:
            x: questions with contexts: a dict or table with `question` and `context`, or a tuple
                of two lists.

        Returns:
            A dict a question, with what `answer` returns as plain values; `nbest` is a list of
            dicts with `answer`, `score`, `start` and `end`.
        """
        return [TASK.json_answer(plain_values(row)) for row in self.predict(x)]

    def text_columns(self, x: Any) -> list[Any] | None:
        """Returns the columns of `x` that `answer` takes; None if it is something else.

        Args:
            x: raw texts in the forms of `predict`, or anything else.
        """
        inputs = read_question_inputs(x)
        return None if inputs is None else [inputs.questions, inputs.contexts]

    def read_inputs(self, x: Any) -> QuestionInputs | None:
        """Reads `x` as questions with contexts; returns None if it is something else.

        Args:
            x: n questions with contexts: a dict or table with `question` and `context`, a tuple of
                two lists, or anything else.
        """
        return read_question_inputs(x)

    def examples(self, inputs: QuestionInputs, answers: Answers) -> Any:
        """Returns windows to train on, and the positions of the answers in them.

        Args:
            inputs: n questions with contexts.
            answers: the answers of each, perhaps none.

        Returns:
            `WindowedExamples`, and int32 (W, K, 2) as `SpanCrossEntropy` takes it.
        """
        windows = self.batching.windows(inputs.contexts, inputs.questions)
        return windows, span_targets(windows, inputs.contexts, read_answers(answers))

"""Question answering by tags: a question and a text in, any number of answers out."""

from collections.abc import Callable
from functools import partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from kbert.data.batches.windowed_examples import WindowedExamples
from kbert.models.encoder import Encoder
from kbert.optimization.sequence_losses import TokenCrossEntropy
from kbert.pipelines.signatures import Signature, label_maps, question_specs
from kbert.tasks.answers import plain_values
from kbert.tasks.ner.head import TokenClassification
from kbert.tasks.ner.token_tagging import TaggedTexts, TokenTagging, owned_targets
from kbert.tasks.question_answering.inputs import (
    Answers,
    QuestionInputs,
    answer_tokens,
    read_opinions,
    read_question_inputs,
)
from kbert.tasks.span_tagging.task import TASK
from kbert.text.sequences.word_boundaries import every_token
from kbert.text.tokenizer import Tokenizer

TAGS = ("B", "I", "O")
_BEGIN, _INSIDE, _OUTSIDE = range(3)
# The best bias of O is searched among these, in nats. Answers are rare, so most are below 0.
OUTSIDE_BIASES = (-3.0, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0)


@keras.saving.register_keras_serializable("kbert")
class SpanTagger(TokenClassification):
    """Marks the answers to a question in a text, none, one or several, with B, I and O.

    A dense layer 3 x H with softmax gives each token of the text a distribution over the three. The
    loss of a text is -sum_i sum_j t_ij log p_ij over its tokens i, with distributions t that need
    not be one-hot: where annotators disagree, t is the share of each opinion.

    `x` in `fit` and `predict` is a dict or table with `question` and `context`, or a tuple of two
    lists; `predict` returns a dict a question, with what `read` returns as NumPy values.

    Args:
        encoder: an encoder such as `Bert`.
        tokenizer: the tokenizer of the encoder's vocabulary.
        max_sequence_length: tokens of a window, question and special ones included.
        stride: tokens that neighbouring windows share.
        max_question_length: longer questions are cut, in tokens.
        soft: whether several opinions on a question are averaged; otherwise the first counts alone.
        dropout: rate of the dropout before the head.
        outside_bias: added to the log probability of O where tags are decoded: below 0 more is
            marked. It moves the threshold, as `null_threshold` does for `QuestionAnswerer`.

    Raises:
        ValueError: tokenizer or sizes do not fit the encoder or each other.
    """

    default_sequence_length = 384
    arguments = (
        *("max_sequence_length", "stride", "max_question_length"),
        *("soft", "dropout", "outside_bias"),
    )
    batching_type = TokenTagging
    needs_pooler = False
    has_questions = True
    huggingface_architecture = "BertForTokenClassification"
    graph_settings = ("outside_bias",)

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer,
        max_sequence_length: int = 384,
        stride: int = 128,
        max_question_length: int = 64,
        soft: bool = True,
        dropout: float = 0.1,
        outside_bias: float = 0.0,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("name", "span_tagger")
        super().__init__(encoder, len(TAGS), dropout, **kwargs)
        self.tokenizer = tokenizer
        self.tag_names = TAGS
        self.max_sequence_length = max_sequence_length
        self.stride = stride
        self.max_question_length: int = max_question_length
        self.soft = soft
        self.outside_bias = outside_bias
        self.batching.check()

    def huggingface_config(self) -> dict[str, Any]:
        """Returns the task's entries of a Hugging Face configuration."""
        return label_maps(TAGS)

    def default_loss(self) -> Any:
        """The sum over the tokens of a text, the mean over the batch."""
        return TokenCrossEntropy(per="sequence")

    def read(self, question: Any, context: Any) -> dict[str, Any]:
        """Finds all answers to questions (B,) in contexts (B,), as graph code.

        Args:
            question: string (B,).
            context: string (B,), the text of each question.

        Returns:
            `answers` string, `starts`, `ends` int32, code points of the context, `scores` float32,
            the mean probability of the answer's tags; each (B, k), in the order of the text, padded
            with "" and 0. `count` int32 (B,), the answers of each row.
        """
        found = self._tagger(question, context)((0.0, 0.0, self.outside_bias))
        return {
            "answers": found.texts.text,
            "starts": found.texts.start,
            "ends": found.texts.end,
            "scores": found.score,
            "count": found.count,
        }

    def read_with_biases(self, question: Any, context: Any) -> dict[str, Any]:
        """Returns `starts`, `ends`, `count` of `read` for each of `OUTSIDE_BIASES`; graph code.

        Args:
            question: string (B,).
            context: string (B,), the text of each question.

        Returns:
            For bias number i `starts_i`, `ends_i` (B, k) and `count_i` (B,), int32.
        """
        tag = self._tagger(question, context)

        def places(bias: tf.Tensor) -> tuple[tf.RaggedTensor, ...]:
            found = tag(bias)
            columns = (found.texts.start, found.texts.end)
            return tuple(tf.RaggedTensor.from_tensor(column, found.count) for column in columns)

        # A loop: a graph that decodes once for each bias takes seconds to trace.
        several = tf.RaggedTensorSpec((None, None), tf.int32, ragged_rank=1)
        biases = tf.constant([(0.0, 0.0, bias) for bias in OUTSIDE_BIASES])
        starts, ends = tf.map_fn(places, biases, fn_output_signature=(several, several))
        outputs = {}
        for i in range(len(OUTSIDE_BIASES)):
            outputs[f"starts_{i}"] = starts[i].to_tensor()
            outputs[f"ends_{i}"] = ends[i].to_tensor()
            outputs[f"count_{i}"] = tf.cast(starts[i].row_lengths(), tf.int32)
        return outputs

    def spans_with_biases(
        self, questions: list[str], contexts: list[str]
    ) -> dict[float, list[list[tuple[int, int]]]]:
        """Returns the answers' offsets for each of `OUTSIDE_BIASES`; the encoder runs once.

        Args:
            questions: n questions.
            contexts: the text of each.

        Returns:
            For each bias and row the (start, end) of its answers, in code points.
        """
        rows = self.batching.predict_columns(self.read_with_biases, [questions, contexts])
        return {
            bias: [
                [(int(s), int(e)) for s, e in zip(row[f"starts_{i}"], row[f"ends_{i}"]) if e > s]
                for row in rows
            ]
            for i, bias in enumerate(OUTSIDE_BIASES)
        }

    def _tagger(self, question: Any, context: Any) -> Callable[[Any], TaggedTexts]:
        """Returns a function from a bias (C,) to the answers; the encoder has run before."""
        offsets = self.tokenizer.tokenize_with_offsets(context)
        questions = self.tokenizer.tokenize(question)
        probabilities = self.batching.token_probabilities(offsets, questions)
        units = every_token(offsets)
        return partial(self.batching.tag_words, context, offsets, units, probabilities)

    def signatures(self) -> dict[str, Signature]:
        """Returns the function of an export and the specs of its inputs."""
        return {"serving_default": (self.read, question_specs())}

    def answers(self, x: Any) -> list[list[dict[str, Any]]]:
        """Returns the answers to each question as plain Python values.

        Args:
            x: questions with contexts: a dict or table with `question` and `context`, or a tuple
                of two lists.

        Returns:
            For each question a list of dicts: `answer`, `score`, `start` and `end`.
        """
        return [TASK.json_answer(plain_values(row))["answers"] for row in self.predict(x)]

    def text_columns(self, x: Any) -> list[Any] | None:
        """Returns the columns of `x` that `read` takes; None if it is something else.

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

    def examples(self, inputs: QuestionInputs, y: Answers) -> tuple[WindowedExamples, np.ndarray]:
        """Returns windows to train on, and the distribution of each of their tokens.

        Every token of a text counts in exactly one window, the one that owns it.

        Args:
            inputs: n questions with contexts.
            y: the opinions on each, perhaps none: an answer, or a list of answers that one
                annotator gave together.

        Returns:
            `WindowedExamples`, and float32 (tokens of `packed`, 3), 0 where a token has no loss.
        """
        windows = self.batching.windows(inputs.contexts, inputs.questions)
        opinions = read_opinions(y)
        if not self.soft:
            opinions = [several[:1] for several in opinions]
        flat = [[answer for opinion in several for answer in opinion] for several in opinions]
        rows, _, first, last = answer_tokens(windows, inputs.contexts, flat)
        bounds = np.searchsorted(rows, np.arange(len(inputs) + 1))

        def shares_of(row: int) -> np.ndarray:
            own = slice(bounds[row], bounds[row + 1])
            starts, _ = windows.places.of(int(windows.context[row]))
            return _shares(first[own], last[own], len(starts), len(opinions[row]))

        unknown = np.zeros((windows.packed.tokens, len(TAGS)), "float32")
        return windows, owned_targets(windows, unknown, shares_of)


def _shares(first: np.ndarray, last: np.ndarray, tokens: int, opinions: int) -> np.ndarray:
    """Returns the share of the opinions with each tag for each token, float32 (tokens, 3)."""
    shares = np.zeros((tokens, len(TAGS)), "float32")
    for begin, end in zip(first.tolist(), last.tolist()):
        shares[begin, _BEGIN] += 1
        shares[begin + 1 : end + 1, _INSIDE] += 1
    shares[:, _OUTSIDE] = np.maximum(0, max(1, opinions) - shares.sum(axis=1))
    # Where the answers of one opinion overlap, it has more than one vote.
    return shares / shares.sum(axis=1, keepdims=True)

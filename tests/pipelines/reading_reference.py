"""What reading models must answer, from the definitions: every window alone, every span counted.

Tokens and their places come from the tokenizer, which has tests of its own; windows from
`tests.text.window_reference`; logits from the NumPy BERT; all the rest is written out here.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tests import numpy_reference as reference
from tests.small_pipelines import TOKENIZER, VOCABULARY
from tests.text.window_reference import lay, owned_by_window, windows_of


class Tokens(NamedTuple):
    """The tokens of one text and their places in it."""

    ids: list[int]
    start_byte: list[int]
    end_byte: list[int]
    start: list[int]
    end: list[int]


def encoded(text: str | bytes) -> bytes:
    """A text as bytes."""
    return text if isinstance(text, bytes) else text.encode()


def decoded(text: str | bytes) -> str:
    """A text as code points: broken bytes as Python replaces them."""
    return text if isinstance(text, str) else text.decode("utf-8", "replace")


_tokenize = tf.function(
    TOKENIZER.tokenize_with_offsets,
    input_signature=[tf.TensorSpec((None,), tf.string)],
    autograph=False,
)


@functools.cache
def tokens_of(text: str | bytes) -> Tokens:
    """The tokens of a text."""
    found = _tokenize(tf.constant([encoded(text)]))
    return Tokens(*(column[0].numpy().tolist() for column in found))


class WindowLogits(NamedTuple):
    """A window: cell -> context token, the tokens it answers for, and logits of its cells."""

    positions: list[int]
    owned: list[int]
    logits: np.ndarray


def window_logits(
    model: Any, question: str | bytes | None, context: str | bytes
) -> list[WindowLogits]:
    """The windows of a context, each put through the NumPy BERT on its own."""
    tokens = tokens_of(context).ids
    asked = None if question is None else tokens_of(question).ids[: model.max_question_length]
    room = model.max_sequence_length - (2 if asked is None else 3 + len(asked))
    windows = windows_of(0, len(tokens), room, room - model.stride)
    arrays = model.encoder.to_checkpoint().arrays
    (head,) = model.head_layers().values()
    found = []
    for window, owned in zip(windows, owned_by_window(windows), strict=True):
        laid = lay(asked, tokens, window, VOCABULARY.cls_id, VOCABULARY.sep_id)
        ids, segments = np.array([laid.ids]), np.array([laid.segments])
        states = reference.bert(
            arrays, ids, model.encoder.num_layers, model.encoder.num_heads, segments
        ).sequence_output[0]
        logits = reference.dense(states, np.asarray(head.kernel), np.asarray(head.bias))
        found.append(WindowLogits(laid.positions, owned, logits))
    return found


class SpanAnswer(NamedTuple):
    """A span of tokens with its score, start logit plus end logit, and its probability."""

    score: float
    probability: float
    first: int
    last: int


class Reading(NamedTuple):
    """All spans, best first, and the score and the probability of no answer."""

    spans: list[SpanAnswer]
    null: float
    null_probability: float


def read(model: Any, question: str | bytes, context: str | bytes) -> Reading:
    """Every span that begins with a token its window answers for and ends in that window."""
    spans, nulls = [], []
    for window in window_logits(model, question, context):
        cells = {position: cell for cell, position in enumerate(window.positions)}
        start, end = window.logits.T
        nulls.append(start[0] + end[0])
        for first in window.owned:
            for last in range(first, first + model.max_answer_length):
                if last in cells:
                    spans.append((start[cells[first]] + end[cells[last]], first, last))
    null = min(nulls)
    total = math.fsum(math.exp(score) for score in [null, *(score for score, _, _ in spans)])
    best = sorted(spans, reverse=True)
    return Reading(
        [SpanAnswer(score, math.exp(score) / total, a, b) for score, a, b in best],
        null,
        math.exp(null) / total,
    )


def token_probabilities(
    model: Any, question: str | bytes | None, context: str | bytes
) -> np.ndarray:
    """Of each token of the context, by the window that answers for it: (tokens, C)."""
    found = np.zeros((len(tokens_of(context).ids), model.num_labels))
    for window in window_logits(model, question, context):
        for cell, position in enumerate(window.positions):
            if position in window.owned:
                found[position] = reference.softmax(window.logits[cell])
    return found


def check_place(
    text: str | bytes, cut: bytes, start: int, end: int, bytes_too: tuple[int, int] | None = None
) -> None:
    """The law of offsets: the text from `start` to `end` is what was returned."""
    whole = decoded(text)
    assert 0 <= start <= end <= len(whole)
    assert whole[start:end] == cut.decode("utf-8", "replace")
    if bytes_too is not None:
        assert encoded(text)[bytes_too[0] : bytes_too[1]] == cut


def same_row(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Two answers are the same: to the letter, and scores as far as another batch's rounding."""
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        if np.asarray(value).dtype.kind == "f":
            np.testing.assert_allclose(found[name], value, atol=1e-5, err_msg=name)
        else:
            np.testing.assert_array_equal(found[name], value, err_msg=name)

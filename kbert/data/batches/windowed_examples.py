"""Long texts as windows to train on: tokenized once, cut as for answers, kept without padding."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.data.batches.packed_examples import PackedExamples, mapped_columns, text_tensor
from kbert.text.graph_functions import cached_graph
from kbert.text.sequences.packing import Windows, cut_windows, lay_out
from kbert.text.tokenizer import Tokenizer
from kbert.text.vocabulary import Vocabulary

_ROWS_PER_CALL = 256  # long texts, and windows


@dataclass(frozen=True)
class TokenPlaces:
    """The tokens of n texts and their offsets, all texts one after the other."""

    token_ids: np.ndarray  # int32 (tokens of all texts)
    start: np.ndarray  # int32, of the same shape: first code point of each token in its text
    end: np.ndarray  # int32: the code point after its last
    splits: np.ndarray  # int64 (n + 1,): the tokens of text i are `splits[i]` to `splits[i + 1]`

    def of(self, text: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the starts and the ends of the tokens of one text."""
        tokens = slice(self.splits[text], self.splits[text + 1])
        return self.start[tokens], self.end[tokens]


@dataclass(frozen=True)
class WindowedExamples:
    """The windows of n rows, each a context and optionally a question."""

    packed: PackedExamples  # the windows' token ids, W examples
    row: np.ndarray  # int32 (W,), the row of each window
    first: np.ndarray  # int32 (W,), the index of its first context token
    size: np.ndarray  # int32 (W,), the number of its context tokens
    owned_from: np.ndarray  # int32 (W,), the first context token that it answers for
    owned_to: np.ndarray  # int32 (W,), the one after the last
    begin: np.ndarray  # int32 (W,), position of the context's first token in the window
    context: np.ndarray  # int64 (n,), the index of each row's context in `places`
    places: TokenPlaces  # tokens of the different contexts

    def __len__(self) -> int:
        return len(self.row)

    def select(self, windows: np.ndarray) -> "WindowedExamples":
        """Returns some of the windows; the tokens of the others stay, unreferenced."""
        columns = ("row", "first", "size", "owned_from", "owned_to", "begin")
        chosen = {name: getattr(self, name)[windows] for name in columns}
        return replace(self, packed=self.packed.select(windows), **chosen)


def token_places(tokenizer: Tokenizer, texts: Sequence[Any]) -> TokenPlaces:
    """Tokenizes texts, str or bytes, without special tokens."""

    def tokenize(text: tf.Tensor) -> tuple[tf.Tensor, ...]:
        found = tokenizer.tokenize_with_offsets(text)
        ids = found.token_ids
        return ids.values, found.start.values, found.end.values, ids.row_lengths()

    graph = cached_graph(tokenizer, tokenize, [], [tf.TensorSpec((None,), tf.string)])
    columns = mapped_columns([text_tensor(texts)], graph, 4, _ROWS_PER_CALL)
    token_ids, start, end, lengths = columns
    splits = np.concatenate([[0], np.cumsum(lengths, dtype="int64")])
    return TokenPlaces(token_ids, start, end, splits)


def window_examples(
    tokenizer: Tokenizer,
    contexts: Sequence[Any],
    questions: Sequence[Any] | None,
    max_sequence_length: int,
    stride: int,
    max_question_length: int = 64,
) -> WindowedExamples:
    """Cuts contexts into windows, with their questions before them. Texts are str or bytes.

    Equal contexts are tokenized once. A window has at most `max_sequence_length` tokens, the
    question and special tokens included; neighbouring windows share `stride` tokens. Questions of
    more than `max_question_length` tokens are cut.
    """
    if questions is not None and len(questions) != len(contexts):
        raise ValueError(
            "`questions` must be as many as `contexts`. "
            f"Received: {len(questions)} and {len(contexts)}"
        )
    numbers: dict[Any, int] = {}
    context = np.array([numbers.setdefault(text, len(numbers)) for text in contexts], "int64")
    places = token_places(tokenizer, list(numbers))
    asked = None if questions is None else token_places(tokenizer, questions)
    lengths = np.diff(places.splits)[context] if len(context) else np.zeros(0, "int64")
    separators = tokenizer.vocabulary.special_tokens.separators
    windows = cut_windows(
        tf.constant(lengths, tf.int32),
        None if asked is None else tf.constant(np.diff(asked.splits), tf.int32),
        max_sequence_length,
        stride,
        max_question_length,
        separators,
    )
    begin = 1 + (0 if questions is None else separators)
    is_cut = np.zeros(len(contexts), bool)
    if asked is not None:
        is_cut = np.diff(asked.splits) > max_question_length
    return WindowedExamples(
        _packed(windows, context, places, asked, is_cut, tokenizer.vocabulary),
        windows.row.numpy(),
        windows.first.numpy(),
        windows.size.numpy(),
        windows.owned_from.numpy(),
        windows.owned_to.numpy(),
        windows.question_length.numpy() + begin,
        context,
        places,
    )


def choose_windows(row: np.ndarray, has_answer: np.ndarray, others: int, seed: int) -> np.ndarray:
    """Keeps the windows with an answer, and `others` more of each row; all where it has fewer.

    A long text has few windows with the answer to a question and many without; a model that trains
    on all of them learns above all that there is none. `row` is the row of each window, int (W,),
    and `has_answer` says whether an answer of the row is in the window, bool (W,). Returns
    ascending int64 indices of windows; the same arguments give the same ones.
    """
    if others < 0:
        raise ValueError(f"`others` must be 0 or more. Received: others={others}")
    if len(row) != len(has_answer):
        raise ValueError(
            "`row` and `has_answer` must have one entry a window. "
            f"Received: {len(row)} and {len(has_answer)}"
        )
    rest = np.flatnonzero(~np.asarray(has_answer, bool))
    draw = np.random.default_rng(seed).random(len(rest))
    rest = rest[np.lexsort((draw, row[rest]))]
    rows = row[rest]
    rank = np.arange(len(rest)) - np.searchsorted(rows, rows)
    return np.sort(np.concatenate([np.flatnonzero(has_answer), rest[rank < others]]))


def _packed(
    windows: Windows,
    context: np.ndarray,
    places: TokenPlaces,
    asked: TokenPlaces | None,
    is_cut: np.ndarray,
    vocabulary: Vocabulary,
) -> PackedExamples:
    """Packs all windows; a window counts as truncated where its row's question was cut."""
    ragged = _ragged(places)
    question_ids = None if asked is None else _ragged(asked)
    contexts_of = tf.constant(context)  # equal contexts are kept once

    def tokens(chosen: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        some = windows.take(chosen)
        # Only their texts: `lay_out` joins the tokens of all that it is given.
        rows, row = tf.unique(some.row)
        own, context = tf.unique(tf.gather(contexts_of, some.row))
        questions = None if question_ids is None else tf.gather(question_ids, rows)
        contexts = tf.gather(ragged, own)
        found = lay_out(some._replace(row=row), contexts, questions, vocabulary, context)
        real = found.padding_mask
        ids = tf.boolean_mask(found.token_ids, real)
        return ids, tf.boolean_mask(found.segment_ids, real)

    row, lengths = windows.row.numpy(), windows.lengths.numpy()
    chosen = tf.range(len(row), dtype=tf.int32)
    token_ids, segment_ids = mapped_columns([chosen], tokens, 2, _ROWS_PER_CALL)
    starts = np.cumsum(lengths, dtype="int64") - lengths
    return PackedExamples(
        token_ids, segment_ids, starts, lengths, is_cut[row], vocabulary.padding_id
    )


def _ragged(places: TokenPlaces) -> tf.RaggedTensor:
    return tf.RaggedTensor.from_row_splits(
        tf.constant(places.token_ids, tf.int32), tf.constant(places.splits, tf.int64)
    )

"""Texts of any length as overlapping windows that fit an encoder.

Source: the sliding window of Devlin et al.'s `run_squad.py` (google-research/bert), whose rule of
the widest context decides which window answers for a token.

Shapes: B rows, W windows of all rows, T length of the longest window at hand.
"""

from typing import NamedTuple

import tensorflow as tf

from kbert.text.wordpiece.vocabulary import Vocabulary

_SPECIALS_OF_ONE = 2  # [CLS] context [SEP]
_SPECIALS_OF_TWO = 3  # [CLS] question [SEP] context [SEP]


class Windows(NamedTuple):
    """Offsets of windows; rows in order, and the windows of a row from left to right.

    Each context token is owned by exactly one window of its row: the one in which the nearer edge
    is farthest away; of two such, the left one.

    Attributes:
        row: int32 (W,), the row.
        first: int32 (W,), the first context token of the window.
        size: int32 (W,), context tokens in the window.
        owned_from: int32 (W,), the first context token that the window owns.
        owned_to: int32 (W,), the one after the last.
        question_length: int32 (W,), tokens of the question before it; 0 without questions.
        lengths: int32 (W,), all tokens, special ones included.
    """

    row: tf.Tensor
    first: tf.Tensor
    size: tf.Tensor
    owned_from: tf.Tensor
    owned_to: tf.Tensor
    question_length: tf.Tensor
    lengths: tf.Tensor

    def take(self, chosen: tf.Tensor) -> "Windows":
        """Returns the windows with the indices `chosen`, int (k,)."""
        return Windows(*(tf.gather(column, chosen) for column in self))


class WindowTokens(NamedTuple):
    """Some windows as inputs of an encoder, with the positions of their tokens in the text.

    Attributes:
        token_ids: int32 (W, T).
        segment_ids: int32 (W, T); 1 for the context of a question and its `[SEP]`, 0 elsewhere.
        padding_mask: bool (W, T); True for a real token.
        position: int32 (W, T); index of the context token in its row, -1 outside the context.
        owned: bool (W, T); True where the window owns the token.
    """

    token_ids: tf.Tensor
    segment_ids: tf.Tensor
    padding_mask: tf.Tensor
    position: tf.Tensor
    owned: tf.Tensor


def check_window_sizes(
    max_sequence_length: int, stride: int, max_question_length: int | None = None
) -> None:
    """Raises a ValueError unless windows of these sizes advance.

    Args:
        max_sequence_length: the most tokens of a window, question and special ones included.
        stride: tokens that neighbouring windows share.
        max_question_length: the most tokens of a question; None without questions.
    """
    if stride < 0:
        raise ValueError(f"`stride` must not be negative. Received: stride={stride}")
    if max_question_length is not None and max_question_length < 1:
        raise ValueError(
            "`max_question_length` must be at least 1. "
            f"Received: max_question_length={max_question_length}"
        )
    question = 0 if max_question_length is None else max_question_length
    specials = _SPECIALS_OF_ONE if max_question_length is None else _SPECIALS_OF_TWO
    least = specials + question + stride + 1
    if max_sequence_length < least:
        words = "the special tokens, the overlap and one token more"
        if max_question_length is not None:
            words = f"the longest question ({question}), {words}"
        raise ValueError(
            f"`max_sequence_length` must be at least {least}: {words}. Received: "
            f"max_sequence_length={max_sequence_length}, stride={stride}"
        )


def cut_windows(
    context_lengths: tf.Tensor,
    question_lengths: tf.Tensor | None,
    max_sequence_length: int,
    stride: int,
    max_question_length: int = 64,
) -> Windows:
    """Cuts contexts into windows, as graph code.

    A row without context tokens has one empty window, so that each row has an answer.

    Args:
        context_lengths: int (B,), tokens of each context.
        question_lengths: int (B,), tokens of each question, or None if there are none.
        max_sequence_length: the most tokens of a window, question and special ones included.
        stride: tokens that neighbouring windows share, as in Hugging Face tokenizers.
        max_question_length: longer questions are truncated to it.

    Returns:
        The windows.
    """
    context = tf.cast(context_lengths, tf.int32)
    if question_lengths is None:
        question, specials = tf.zeros_like(context), _SPECIALS_OF_ONE
    else:
        question = tf.minimum(tf.cast(question_lengths, tf.int32), max_question_length)
        specials = _SPECIALS_OF_TWO
    room = max_sequence_length - specials - question  # (B,)
    step = room - stride
    count = 1 + tf.maximum(context - room + step - 1, 0) // step
    row = tf.repeat(tf.range(tf.size(context)), count)  # (W,)
    number = tf.range(tf.size(row)) - tf.gather(tf.cumsum(count, exclusive=True), row)
    context, question, room, step, count = (
        tf.gather(column, row) for column in (context, question, room, step, count)
    )
    first = number * step
    size = tf.minimum(room, context - first)
    # Of what two neighbours share, the left one owns up to the middle. The left of two is never the
    # last of its row, so it is full.
    middle = (first + first + step + room - 1) // 2 + 1
    return Windows(
        row=row,
        first=first,
        size=size,
        owned_from=tf.where(number > 0, middle - step, 0),
        owned_to=tf.where(number + 1 < count, middle, context),
        question_length=question,
        lengths=size + question + specials,
    )


def lay_out(
    windows: Windows,
    contexts: tf.RaggedTensor,
    questions: tf.RaggedTensor | None,
    vocabulary: Vocabulary,
    context_row: tf.Tensor | None = None,
) -> WindowTokens:
    """Lays out windows as inputs of an encoder, padded to the longest of them, as graph code.

    Args:
        windows: the windows; see `Windows.take`.
        contexts: ragged ids (B, (tokens)).
        questions: ragged ids (B, (tokens)), or None.
        vocabulary: defines the ids of the special tokens.
        context_row: int (W,), the row of `contexts` where that is not `windows.row`.
    """
    row, first, size, owned_from, owned_to, question_length, lengths = (
        column[:, tf.newaxis] for column in windows
    )
    place = tf.range(tf.reduce_max(lengths))[tf.newaxis, :]  # (1, T)
    real = place < lengths  # (W, T)
    begin = 1 if questions is None else question_length + 2  # of the context
    offset = place - begin
    in_context = (offset >= 0) & (offset < size)
    position = tf.where(in_context, first + offset, -1)
    # One gather from special tokens, contexts and questions, concatenated.
    ids = [tf.constant([vocabulary.padding_id, vocabulary.cls_id, vocabulary.sep_id])]
    ids.append(tf.cast(contexts.values, tf.int32))
    index = tf.where(real, 2, 0)  # [SEP] where there is neither text nor padding
    index = tf.where(tf.equal(place, 0), 1, index)
    own = row if context_row is None else context_row[:, tf.newaxis]
    starts = tf.cast(tf.gather(contexts.row_starts(), own), tf.int32)
    index = tf.where(in_context, 3 + starts + position, index)
    if questions is None:
        segment_ids = tf.zeros_like(index)
    else:
        starts = tf.cast(tf.gather(questions.row_starts(), row), tf.int32)
        before = 3 + tf.size(contexts.values) - 1  # a question begins at position 1
        in_question = (place >= 1) & (place <= question_length)
        index = tf.where(in_question, before + starts + place, index)
        ids.append(tf.cast(questions.values, tf.int32))
        segment_ids = tf.cast(real & (offset >= 0), tf.int32)
    return WindowTokens(
        token_ids=tf.gather(tf.concat(ids, axis=0), index),
        segment_ids=segment_ids,
        padding_mask=real,
        position=position,
        owned=in_context & (position >= owned_from) & (position < owned_to),
    )

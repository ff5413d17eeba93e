"""Texts of any length as overlapping windows that fit an encoder, read in chunks that fit memory.

Source: the sliding window of Devlin et al.'s `run_squad.py` (google-research/bert), whose rule of
the widest context decides which window answers for a token.

Shapes: B rows, W windows of all rows, T length of the longest window at hand.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from kbert.text.sequences.packing import laid_out
from kbert.text.wordpiece.vocabulary import Vocabulary

_SPECIALS_OF_ONE = 2  # [CLS] context [SEP]
_SPECIALS_OF_TWO = 3  # [CLS] question [SEP] context [SEP]


class Windows(NamedTuple):
    """Offsets of windows; rows in order, and the windows of a row from left to right.

    Each context token is owned by exactly one window of its row: the one in which the nearer edge
    is farthest away; of two such, the left one.
    """

    row: tf.Tensor  # int32 (W,), the row
    first: tf.Tensor  # int32 (W,), the first context token of the window
    size: tf.Tensor  # int32 (W,), context tokens in the window
    owned_from: tf.Tensor  # int32 (W,), the first context token that the window owns
    owned_to: tf.Tensor  # int32 (W,), the one after the last
    question_length: tf.Tensor  # int32 (W,), tokens of the question before it; 0 without questions
    lengths: tf.Tensor  # int32 (W,), all tokens, special ones included

    def take(self, chosen: tf.Tensor) -> "Windows":
        """Returns the windows with the indices `chosen`, int (k,)."""
        return Windows(*(tf.gather(column, chosen) for column in self))


class WindowTokens(NamedTuple):
    """Some windows as inputs of an encoder, with the positions of their tokens in the text."""

    token_ids: tf.Tensor  # int32 (W, T)
    # int32 (W, T); 1 for the context of a question and its `[SEP]`, 0 elsewhere.
    segment_ids: tf.Tensor
    padding_mask: tf.Tensor  # bool (W, T); True for a real token
    # int32 (W, T); index of the context token in its row, -1 outside the context.
    position: tf.Tensor
    owned: tf.Tensor  # bool (W, T); True where the window owns the token


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
    own = row if context_row is None else context_row[:, tf.newaxis]
    starts = tf.cast(tf.gather(contexts.row_starts(), own), tf.int32)
    parts = [(contexts.values, starts + first, size)]
    if questions is None:
        segment_ids = tf.zeros_like(position)
    else:
        starts = tf.cast(tf.gather(questions.row_starts(), row), tf.int32)
        parts.insert(0, (questions.values, starts, question_length))
        segment_ids = tf.cast(real & (offset >= 0), tf.int32)
    return WindowTokens(
        token_ids=laid_out(parts, place, real, vocabulary),
        segment_ids=segment_ids,
        padding_mask=real,
        position=position,
        owned=in_context & (position >= owned_from) & (position < owned_to),
    )


def map_in_chunks(
    function: Callable[[tf.Tensor], Sequence[tf.Tensor]],
    lengths: tf.Tensor,
    chunk_cells: int,
    outputs: Sequence[tf.TensorSpec],
    at_once: int = 1,
) -> list[tf.Tensor]:
    """Applies a function to sequences, longest first, as many at a time as fit.

    Sequences of similar length share a chunk: little padding, and few chunks are in memory.

    Args:
        function: takes the indices of some sequences, int32 (k,), and returns tensors.
        lengths: int32 (W,), the length of each sequence, at least 1.
        chunk_cells: the most positions, sequences times longest sequence, of a chunk; a longer
            sequence is a chunk of its own.
        outputs: a spec for each of the tensors; the first dimension may differ between chunks.
        at_once: how many chunks may run in parallel. More than one pays for a function of many
            small steps, each too small for all cores; and only without side effects (reading a
            variable is one).

    Returns:
        For each output the tensors of all chunks, concatenated; see `places_in_chunks`.
    """
    order = _longest_first(lengths)
    total = tf.size(order)
    arrays = [
        tf.TensorArray(
            spec.dtype,
            size=0,
            dynamic_size=True,
            infer_shape=False,
            element_shape=(None, *spec.shape[1:]),
        ).write(0, tf.zeros((0, *spec.shape[1:]), spec.dtype))  # or there may be nothing to join
        for spec in outputs
    ]

    def unfinished(start: tf.Tensor, number: tf.Tensor, arrays: Any) -> tf.Tensor:
        return start < total

    def advance(start: tf.Tensor, number: tf.Tensor, arrays: Any) -> Any:
        width = tf.gather(lengths, order[start])
        end = tf.minimum(total, start + tf.maximum(1, chunk_cells // width))
        found = function(order[start:end])
        written = [array.write(number, tensor) for array, tensor in zip(arrays, found, strict=True)]
        return end, number + 1, written

    _, _, arrays = tf.while_loop(
        unfinished,
        advance,
        (tf.constant(0), tf.constant(1), arrays),
        parallel_iterations=at_once,
    )
    return [array.concat() for array in arrays]


def places_in_chunks(lengths: tf.Tensor) -> tf.Tensor:
    """Returns each sequence's index in outputs of `map_in_chunks` with one row per sequence.

    Gathering an output by them puts it into the order of the sequences, of int32 lengths (W,).
    """
    return tf.math.invert_permutation(_longest_first(lengths))


def _longest_first(lengths: tf.Tensor) -> tf.Tensor:
    return tf.argsort(lengths, direction="DESCENDING", stable=True)

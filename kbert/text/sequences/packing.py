"""Texts as inputs of an encoder: one or two in a sequence, or any length as overlapping windows.

Source of the windows: the sliding window of Devlin et al.'s `run_squad.py` (google-research/bert),
whose rule of the widest context decides which window answers for a token.

Shapes: B rows, T length of the longest sequence or window at hand, W windows of all rows.
"""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from kbert.text.vocabulary import Vocabulary

_SPECIALS_OF_ONE = 2  # [CLS] text [SEP]; a second text has its separators too


class PackedText(NamedTuple):
    """`[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`, padded. T is the same for the whole batch.

    A vocabulary with two separators has `[CLS] a [SEP] [SEP] b [SEP]`.
    """

    token_ids: tf.Tensor  # int32 (B, T); `[PAD]` after the sequence
    segment_ids: tf.Tensor  # int32 (B, T); 1 for b and its `[SEP]` if there are segments
    padding_mask: tf.Tensor  # bool (B, T); True for a real token
    lengths: tf.Tensor  # int32 (B,); real tokens, special ones included
    truncated: tf.Tensor  # bool (B,); whether the texts were truncated


def pack(
    segments: Sequence[tf.RaggedTensor],
    vocabulary: Vocabulary,
    max_sequence_length: int,
    fixed_length: bool = False,
) -> PackedText:
    """Packs one or two texts per example: ragged ids (B, (tokens)), without special tokens.

    What is too long is truncated as by google-research/bert (`_truncate_seq_pair` of
    `run_classifier.py`): the last token of the longer text is removed repeatedly; if both are
    equally long, that of the second text. Hugging Face tokenizers' `longest_first` truncates to the
    same lengths, except that where both texts are cut to an odd total, and the second was at least
    as long as the first, it leaves the odd token to the second text.

    An example has at most `max_sequence_length` tokens, special ones included. With `fixed_length`
    T is `max_sequence_length` instead of the longest example's length.
    """
    if len(segments) not in (1, 2):
        raise ValueError(f"`segments` must be one or two. Received: {len(segments)} segments")
    separators = vocabulary.special_tokens.separators
    specials = _SPECIALS_OF_ONE + (separators if len(segments) == 2 else 0)
    if max_sequence_length < specials:
        raise ValueError(
            f"`max_sequence_length` must be at least {specials}, the special tokens of "
            f"{len(segments)} segments. Received: max_sequence_length={max_sequence_length}"
        )
    full = [tf.cast(segment.row_lengths(), tf.int32) for segment in segments]
    room = max_sequence_length - specials
    # In closed form: that loop ends with a text of more than half of the room only if the other one
    # leaves it; two long texts end up equal, the first with the odd token.
    left = tf.maximum(room - full[1], (room + 1) // 2) if len(full) == 2 else room
    kept = [tf.minimum(full[0], left)]
    kept += [tf.minimum(second, room - kept[0]) for second in full[1:]]
    lengths = tf.add_n(kept) + specials
    longest = tf.maximum(tf.reduce_max(lengths), specials)  # the latter for an empty batch
    place = tf.range(max_sequence_length if fixed_length else longest)[tf.newaxis, :]
    padding_mask = place < lengths[:, tf.newaxis]
    starts = [tf.cast(segment.row_starts(), tf.int32) for segment in segments]
    parts = [
        (segment.values, start[:, tf.newaxis], length[:, tf.newaxis])
        for segment, start, length in zip(segments, starts, kept, strict=True)
    ]
    second = kept[0][:, tf.newaxis] + 1 + separators  # where the second text begins
    return PackedText(
        token_ids=_laid_out(parts, place, padding_mask, vocabulary),
        # Of one text nothing is left behind its [SEP].
        segment_ids=_segments(second, place, padding_mask, vocabulary),
        padding_mask=padding_mask,
        lengths=lengths,
        truncated=tf.add_n(full) + specials > lengths,
    )


def _laid_out(
    parts: Sequence[tuple[tf.Tensor, tf.Tensor, tf.Tensor]],
    place: tf.Tensor,
    padding_mask: tf.Tensor,
    vocabulary: Vocabulary,
) -> tf.Tensor:
    """Returns the ids (B, T) of sequences: one gather from special tokens and texts, concatenated.

    Each of the one or two parts holds the ids of all its texts (n,), and for each sequence the
    index of its first token among them (B, 1) and the number of its tokens (B, 1). `place` counts
    from 0, int32 (1, T), and `padding_mask`, bool (B, T), is True for a real token.
    """
    ids = [tf.constant([vocabulary.padding_id, vocabulary.cls_id, vocabulary.sep_id])]
    index = tf.where(padding_mask, 2, 0)  # [SEP] where there is neither text nor padding
    index = tf.where(tf.equal(place, 0), 1, index)
    offset = 3  # of the part in `ids`
    begins = tf.constant([[1]])  # its start in its row
    for values, first, length in parts:
        ends = begins + length
        source = first + offset - begins
        index = tf.where((place >= begins) & (place < ends), place + source, index)
        ids.append(tf.cast(values, tf.int32))
        offset += tf.size(values)
        begins = ends + vocabulary.special_tokens.separators
    return tf.gather(tf.concat(ids, axis=0), index)


def _segments(
    second: tf.Tensor, place: tf.Tensor, padding_mask: tf.Tensor, vocabulary: Vocabulary
) -> tf.Tensor:
    """Returns segment ids int32 (B, T), given where the second text begins, int32 (B, 1)."""
    if not vocabulary.special_tokens.has_segments:
        return tf.zeros_like(padding_mask, tf.int32)
    return tf.cast((place >= second) & padding_mask, tf.int32)


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
    max_sequence_length: int,
    stride: int,
    max_question_length: int | None = None,
    separators: int = 1,
) -> None:
    """Raises a ValueError unless windows of these sizes, see `cut_windows`, advance.

    `max_question_length` is None without questions.
    """
    if stride < 0:
        raise ValueError(f"`stride` must not be negative. Received: stride={stride}")
    if max_question_length is not None and max_question_length < 1:
        raise ValueError(
            "`max_question_length` must be at least 1. "
            f"Received: max_question_length={max_question_length}"
        )
    question = max_question_length or 0
    specials = _SPECIALS_OF_ONE + (0 if max_question_length is None else separators)
    least = specials + question + stride + 1
    if max_sequence_length < least:
        words = "the special tokens, the overlap and one token more"
        if question:
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
    separators: int = 1,
) -> Windows:
    """Cuts contexts of int (B,) tokens, with or without questions of as many, into windows.

    A window has at most `max_sequence_length` tokens, question and special ones included, and
    neighbours share `stride` tokens of the context, as in Hugging Face tokenizers. Longer questions
    than `max_question_length` are truncated; `separators` follow each of them. A row without
    context tokens has one empty window, so that each row has an answer.
    """
    context = tf.cast(context_lengths, tf.int32)
    if question_lengths is None:
        question, specials = tf.zeros_like(context), _SPECIALS_OF_ONE
    else:
        question = tf.minimum(tf.cast(question_lengths, tf.int32), max_question_length)
        specials = _SPECIALS_OF_ONE + separators
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

    Contexts and questions are ragged ids (B, (tokens)); `context_row`, int (W,), is the row of
    `contexts` where that is not `windows.row`.
    """
    row, first, size, owned_from, owned_to, question_length, lengths = (
        column[:, tf.newaxis] for column in windows
    )
    place = tf.range(tf.reduce_max(lengths))[tf.newaxis, :]  # (1, T)
    real = place < lengths  # (W, T)
    separators = vocabulary.special_tokens.separators
    begin = 1 if questions is None else question_length + 1 + separators
    offset = place - begin  # in the context
    in_context = (offset >= 0) & (offset < size)
    position = tf.where(in_context, first + offset, -1)
    own = row if context_row is None else context_row[:, tf.newaxis]
    starts = tf.cast(tf.gather(contexts.row_starts(), own), tf.int32)
    parts = [(contexts.values, starts + first, size)]
    if questions is not None:
        starts = tf.cast(tf.gather(questions.row_starts(), row), tf.int32)
        parts.insert(0, (questions.values, starts, question_length))
    return WindowTokens(
        token_ids=_laid_out(parts, place, real, vocabulary),
        segment_ids=tf.zeros_like(real, tf.int32)
        if questions is None
        else _segments(begin, place, real, vocabulary),
        padding_mask=real,
        position=position,
        owned=in_context & (position >= owned_from) & (position < owned_to),
    )

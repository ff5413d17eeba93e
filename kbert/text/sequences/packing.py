"""Packing of one or two texts into one BERT input sequence."""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from kbert.text.wordpiece.vocabulary import Vocabulary


class PackedText(NamedTuple):
    """`[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`, padded. T is the same for the whole batch."""

    token_ids: tf.Tensor  # int32 (B, T); `[PAD]` after the sequence
    segment_ids: tf.Tensor  # int32 (B, T); 1 for b and its `[SEP]`, 0 elsewhere
    padding_mask: tf.Tensor  # bool (B, T); True for a real token
    lengths: tf.Tensor  # int32 (B,); real tokens, special ones included
    truncated: tf.Tensor  # bool (B,); whether the texts were truncated


def pack(
    segments: Sequence[tf.RaggedTensor],
    vocabulary: Vocabulary,
    max_sequence_length: int,
    fixed_length: bool = False,
) -> PackedText:
    """Packs one or two texts per example.

    What is too long is truncated as by google-research/bert (`_truncate_seq_pair` of
    `run_classifier.py`): the last token of the longer text is removed repeatedly; if both are
    equally long, that of the second text. Hugging Face tokenizers' `longest_first` truncates to the
    same lengths, except that where both texts are cut to an odd total, and the second was at least
    as long as the first, it leaves the odd token to the second text.

    Args:
        segments: One or two RaggedTensors (B, (tokens)) of ids, without special tokens.
        vocabulary: Defines the ids of `[CLS]`, `[SEP]` and `[PAD]`.
        max_sequence_length: The most tokens of an example, special ones included.
        fixed_length: Whether T is `max_sequence_length` instead of the longest example's length.

    Returns:
        The packed batch.

    Raises:
        ValueError: Not one or two segments, or no room for the special tokens.
    """
    if len(segments) not in (1, 2):
        raise ValueError(f"`segments` must be one or two. Received: {len(segments)} segments")
    specials = len(segments) + 1
    if max_sequence_length < specials:
        raise ValueError(
            f"`max_sequence_length` must be at least {specials}, the special tokens of "
            f"{len(segments)} segments. Received: max_sequence_length={max_sequence_length}"
        )
    full = [tf.cast(segment.row_lengths(), tf.int32) for segment in segments]
    kept = _kept_lengths(full, max_sequence_length - specials)
    lengths = tf.add_n(kept) + specials
    if fixed_length:
        width = tf.constant(max_sequence_length)
    else:
        width = tf.maximum(tf.reduce_max(lengths), specials)  # the latter for an empty batch
    place = tf.range(width)[tf.newaxis, :]
    padding_mask = place < lengths[:, tf.newaxis]
    starts = [tf.cast(segment.row_starts(), tf.int32) for segment in segments]
    parts = [
        (segment.values, start[:, tf.newaxis], length[:, tf.newaxis])
        for segment, start, length in zip(segments, starts, kept, strict=True)
    ]
    token_ids = laid_out(parts, place, padding_mask, vocabulary)
    if len(segments) == 2:
        in_second = (place >= kept[0][:, tf.newaxis] + 2) & padding_mask
        segment_ids = tf.cast(in_second, tf.int32)
    else:
        segment_ids = tf.zeros_like(token_ids)
    truncated = tf.add_n(full) + specials > lengths
    return PackedText(token_ids, segment_ids, padding_mask, lengths, truncated)


def _kept_lengths(full: list[tf.Tensor], room: int) -> list[tf.Tensor]:
    """Returns the tokens that are kept of each text, int32 (B,) each, in closed form.

    The loop of `_truncate_seq_pair` ends with a text of more than half of the room only if the
    other one leaves it; two long texts end up equal, the first with the odd token.
    """
    if len(full) == 1:
        return [tf.minimum(full[0], room)]
    first = tf.minimum(full[0], tf.maximum(room - full[1], (room + 1) // 2))
    return [first, tf.minimum(full[1], room - first)]


def laid_out(
    parts: Sequence[tuple[tf.Tensor, tf.Tensor, tf.Tensor]],
    place: tf.Tensor,
    padding_mask: tf.Tensor,
    vocabulary: Vocabulary,
) -> tf.Tensor:
    """Returns the ids (B, T) of sequences: one gather from special tokens and texts, concatenated.

    Args:
        parts: one or two, each the ids of all its texts (n,), and for each sequence the index of
            its first token among them (B, 1) and the number of its tokens (B, 1).
        place: int32 (1, T), counting from 0.
        padding_mask: bool (B, T), True for a real token.
        vocabulary: Defines the ids of `[CLS]`, `[SEP]` and `[PAD]`.
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
        begins = ends + 1
    return tf.gather(tf.concat(ids, axis=0), index)

"""Offsets of tokens in the original texts.

Shapes: B texts, S segments, k tokens and m characters of all texts.
"""

from typing import NamedTuple

import tensorflow as tf

from kbert.text.byte_level_bpe.segments import NOT_SPECIAL, Segments
from kbert.text.tokenizer import TokenOffsets
from kbert.text.vocabulary import Vocabulary, byte_characters
from kbert.text.wordpiece.normalizer import decode

_SPACE = byte_characters()[0x20]
_VALID_UTF8 = r"(?:[\x00-\x7f]|[\x{80}-\x{d7ff}]|[\x{e000}-\x{10ffff}])*"


class _Characters(NamedTuple):
    """Characters of all texts, and their bytes after broken ones have become U+FFFD."""

    of_bytes: tf.Tensor  # the character that each byte is of, int64 (bytes,)
    first_bytes: tf.Tensor  # the first byte of each character in the original texts, int64 (m,)
    row_splits: tf.Tensor  # first character of each text, int64 (B + 1,)
    byte_splits: tf.Tensor  # first original byte of each text, int64 (B + 1,)


class TokenPlaces:
    """Finds tokens in texts by the lengths of the tokens, since nothing of a text is lost.

    A token that is part of a character has the place of the whole character.
    """

    def __init__(self, vocabulary: Vocabulary, trim: bool, add_prefix_space: bool) -> None:
        self._trim = trim
        self._add_prefix_space = add_prefix_space
        tokens = vocabulary.tokens
        with tf.init_scope(), tf.device("CPU:0"):
            self._lengths = tf.constant([len(token) for token in tokens], tf.int64)
            self._leading = tf.constant(
                [len(token) - len(token.lstrip(_SPACE)) for token in tokens], tf.int64
            )
            self._trailing = tf.constant(
                [len(token) - len(token.rstrip(_SPACE)) for token in tokens], tf.int64
            )

    def find(
        self,
        texts: tf.Tensor,
        segments: Segments,
        tokens: tf.RaggedTensor,
        is_prefixed: tf.Tensor,
    ) -> TokenOffsets:
        """Finds the tokens of each segment, ragged int32 (S, (tokens)), in texts, string (B,).

        `is_prefixed`, bool (S,), tells which segments got a space before them.
        """
        characters = _characters_of(texts)
        segment = tokens.value_rowids()
        is_special = tf.gather(segments.special_ids, segment) > NOT_SPECIAL
        lengths = tf.where(
            is_special,
            tf.cast(tf.gather(tf.strings.length(segments.strings), segment), tf.int64),
            tf.gather(self._lengths, tokens.values),
        )
        begin, end = self._bytes(lengths, tokens, is_prefixed)
        first, last = (tf.gather(characters.of_bytes, byte) for byte in (begin, end - 1))
        rows = tf.RaggedTensor.from_row_splits(
            tokens.values, tf.gather(tokens.row_splits, segments.row_splits), validate=False
        )
        row = rows.value_rowids()
        row_start = tf.gather(characters.row_splits, row)
        start, end = first - row_start, last + 1 - row_start
        if self._trim:
            names = tf.gather(self._lengths, tokens.values)
            leading = tf.where(
                is_special, end - start - names, tf.gather(self._leading, tokens.values)
            )
            trailing = tf.gather(self._trailing, tokens.values)
            trailing = tf.where(is_special, tf.zeros_like(trailing), trailing)
            start, end = self._trimmed(start, end, leading, trailing)
        places = (
            _original_bytes(start, row, characters),
            _original_bytes(end, row, characters),
            start,
            end,
        )
        return TokenOffsets(rows, *(rows.with_values(tf.cast(one, tf.int32)) for one in places))

    def _bytes(
        self, lengths: tf.Tensor, tokens: tf.RaggedTensor, is_prefixed: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns where tokens begin and end in the bytes of all texts, int64 (k,).

        A space that was added has the place of the first byte after it.
        """
        segment = tokens.value_rowids()
        added = tf.cast(is_prefixed, tf.int64)
        added_so_far = tf.cumsum(added)
        ends = tf.cumsum(lengths)
        ends_before = tf.concat([[0], ends], axis=0)
        segment_begin = tf.gather(ends_before, tokens.row_starts()) - (added_so_far - added)
        least = tf.gather(segment_begin, segment)
        ends -= tf.gather(added_so_far, segment)
        return tf.maximum(ends - lengths, least), tf.maximum(ends, least + 1)

    def _trimmed(
        self, start: tf.Tensor, end: tf.Tensor, leading: tf.Tensor, trailing: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Leaves out spaces at the ends of tokens, as RoBERTa's post-processor does.

        With `add_prefix_space` a single space at the start of a text is kept, as if it had been
        added.
        Source: `process_offsets` of Hugging Face `tokenizers`.
        """
        if self._add_prefix_space:
            leading -= tf.cast(tf.equal(start, 0) & tf.equal(leading, 1), tf.int64)
        start = tf.minimum(start + leading, end)
        is_trimmed = (trailing > 0) & (end >= trailing)
        return start, tf.where(is_trimmed, tf.maximum(end - trailing, start), end)


def _characters_of(texts: tf.Tensor) -> _Characters:
    is_valid = tf.reduce_all(tf.strings.regex_full_match(texts, _VALID_UTF8))
    return tf.cond(is_valid, lambda: _valid_characters(texts), lambda: _any_characters(texts))


def _valid_characters(texts: tf.Tensor) -> _Characters:
    """Finds the characters of valid UTF-8: each byte but those that continue one begins one."""
    numbers = tf.io.decode_raw(tf.strings.reduce_join(texts), tf.uint8)
    is_first = tf.not_equal(tf.bitwise.bitwise_and(numbers, 0xC0), 0x80)
    begun = tf.concat([[0], tf.cumsum(tf.cast(is_first, tf.int64))], axis=0)
    byte_splits = _byte_splits(texts)
    return _Characters(
        begun[1:] - 1, tf.where(is_first)[:, 0], tf.gather(begun, byte_splits), byte_splits
    )


def _any_characters(texts: tf.Tensor) -> _Characters:
    decoded = decode(texts)
    points, byte_splits = decoded.points, _byte_splits(texts)
    longer = [tf.cast(points >= bound, tf.int64) for bound in (0x80, 0x800, 0x10000)]
    begins = tf.concat([[0], tf.cumsum(1 + tf.add_n(longer))], axis=0)
    is_first = tf.scatter_nd(
        begins[:-1, tf.newaxis], tf.ones_like(begins[1:]), tf.reshape(begins[-1], [1])
    )
    lengths = decoded.row_splits[1:] - decoded.row_splits[:-1]
    first_bytes = decoded.first_byte + tf.repeat(byte_splits[:-1], lengths)
    return _Characters(tf.cumsum(is_first) - 1, first_bytes, decoded.row_splits, byte_splits)


def _byte_splits(texts: tf.Tensor) -> tf.Tensor:
    lengths = tf.cast(tf.strings.length(texts), tf.int64)
    return tf.concat([[0], tf.cumsum(lengths)], axis=0)


def _original_bytes(place: tf.Tensor, row: tf.Tensor, characters: _Characters) -> tf.Tensor:
    """Returns the byte of its text at which each character begins, int64 (k,).

    `place` are offsets of characters in the text of each `row`, its end included.
    """
    index = tf.gather(characters.row_splits, row) + place
    is_end = tf.equal(index, tf.gather(characters.row_splits, row + 1))
    inside = tf.minimum(index, tf.size(characters.first_bytes, tf.int64) - 1)
    end = tf.gather(characters.byte_splits, row + 1)
    byte = tf.where(is_end, end, tf.gather(characters.first_bytes, inside))
    return byte - tf.gather(characters.byte_splits, row)

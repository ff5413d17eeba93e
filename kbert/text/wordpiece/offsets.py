"""Offsets of tokens in the original text, in bytes and in code points."""

from typing import NamedTuple

import tensorflow as tf

from kbert.text.wordpiece.normalizer import NormalizedText


class TokenOffsets(NamedTuple):
    """Tokens and their offsets in the text. All are ragged int32 (B, (tokens)).

    `text.encode()[start_byte:end_byte]` and `text[start:end]` are the same slice of the original
    text, for a text that is UTF-8. A broken sequence of bytes counts as the one U+FFFD, or the
    several, that `bytes.decode("utf-8", "replace")` replaces it by.

    Attributes:
        token_ids: The tokens' ids.
        start_byte: First byte of each token in its row.
        end_byte: The byte after its last.
        start: First code point (Python's `str` index) of each token in its row.
        end: The code point after its last.
    """

    token_ids: tf.RaggedTensor
    start_byte: tf.RaggedTensor
    end_byte: tf.RaggedTensor
    start: tf.RaggedTensor
    end: tf.RaggedTensor


class DecodedText(NamedTuple):
    """Rows decoded from UTF-8.

    Attributes:
        points: Code points of all rows, concatenated, int32 (m,).
        row_splits: int64 (rows + 1,).
        first_byte: First byte of each code point in its row, int64 (m,).
        row_bytes: Bytes of each row, int32 (rows,).
    """

    points: tf.Tensor
    row_splits: tf.Tensor
    first_byte: tf.Tensor
    row_bytes: tf.Tensor


def decode(text: tf.Tensor) -> DecodedText:
    """Decodes rows like `bytes.decode("utf-8", "replace")`.

    Args:
        text: string (rows,).
    """
    decoded = tf.raw_ops.UnicodeDecodeWithOffsets(
        input=text, input_encoding="UTF-8", errors="replace", Tsplits=tf.int64
    )
    return DecodedText(
        points=decoded.char_values,
        row_splits=decoded.row_splits,
        first_byte=decoded.char_to_byte_starts,
        row_bytes=tf.strings.length(text),
    )


def original_offsets(
    token_row: tf.Tensor,
    start: tf.Tensor,
    end: tf.Tensor,
    normalized: NormalizedText,
    decoded: DecodedText,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Maps tokens of normalized rows back to offsets in the original rows.

    Args:
        token_row: Row of each token, int64 (k,).
        start: First byte of each token in its normalized row, int64 (k,).
        end: The byte after its last, int64 (k,).
        normalized: The rows that were matched.
        decoded: The same rows before normalization.

    Returns:
        start_byte, end_byte, start, end: each int64 (k,), relative to the token's own row.
    """
    bytes_before = tf.concat([[0], tf.cumsum(_utf8_lengths(normalized.values))], axis=0)
    row_byte = tf.gather(tf.gather(bytes_before, normalized.row_splits), token_row)

    def source_of(byte: tf.Tensor) -> tf.Tensor:
        """Returns the code point of the original text behind a byte of the normalized text."""
        index = tf.searchsorted(bytes_before, row_byte + byte, side="right", out_type=tf.int64) - 1
        position = tf.gather(normalized.position, index)
        splits = normalized.source_splits
        return tf.searchsorted(splits, position, side="right", out_type=tf.int64) - 1

    first, last = source_of(start), source_of(end - 1)
    row_start = tf.gather(decoded.row_splits, token_row)
    is_row_end = tf.equal(last + 1, tf.gather(decoded.row_splits, token_row + 1))
    row_bytes = tf.cast(tf.gather(decoded.row_bytes, token_row), tf.int64)
    following = tf.minimum(last + 1, tf.size(decoded.points, tf.int64) - 1)
    return (
        tf.gather(decoded.first_byte, first),
        tf.where(is_row_end, row_bytes, tf.gather(decoded.first_byte, following)),
        first - row_start,
        last + 1 - row_start,
    )


def _utf8_lengths(points: tf.Tensor) -> tf.Tensor:
    """Returns the bytes of each code point in UTF-8, int64 of the same shape."""
    longer = [tf.cast(points >= bound, tf.int64) for bound in (0x80, 0x800, 0x10000)]
    return 1 + longer[0] + longer[1] + longer[2]

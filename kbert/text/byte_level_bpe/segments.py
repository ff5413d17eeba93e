"""Texts cut at special tokens that are typed in them.

Shapes: B texts, S segments.
"""

import re
from typing import NamedTuple

import tensorflow as tf

from kbert.text.byte_level_bpe.code_point_classes import WHITE_SPACE
from kbert.text.byte_level_bpe.regex_split import regex_split
from kbert.text.vocabulary import Vocabulary

NOT_SPECIAL = -1
# tensorflow-text's op stops at U+0000, which a text may have.
_ESCAPES = (("\x01", "\x01\x02"), ("\x00", "\x01\x03"))


class Segments(NamedTuple):
    """Parts of texts, each a special token or what stands between two of them."""

    strings: tf.Tensor  # string (S,), none empty but where a text is
    special_ids: tf.Tensor  # the special token that a segment is, or NOT_SPECIAL, int32 (S,)
    row_splits: tf.Tensor  # first segment of each text, int64 (B + 1,)


def whole_texts(texts: tf.Tensor) -> Segments:
    """Takes each text, string (B,), as one segment without special tokens."""
    count = tf.size(texts, tf.int64)
    return Segments(texts, tf.fill([count], NOT_SPECIAL), tf.range(count + 1))


def segments_of(texts: tf.Tensor, vocabulary: Vocabulary) -> Segments:
    """Cuts texts, string (B,), at the special tokens; the mask token absorbs white space before it.

    Source: `lstrip` of the added tokens of Hugging Face `tokenizers`, as RoBERTa's are set.
    """
    white = "".join(
        "-".join(f"\\x{{{point}}}" for point in item.split("-")) for item in WHITE_SPACE.split()
    )
    names = [name for name in vocabulary.special_tokens.names if name in vocabulary]
    patterns = {
        name: rf"[{white}]*{re.escape(name)}"
        if name == vocabulary.special_tokens.mask
        else re.escape(name)
        for name in sorted(names, key=len, reverse=True)
    }
    every = "|".join(patterns.values())
    for plain, escaped in _ESCAPES:
        texts = tf.strings.regex_replace(texts, plain, escaped)
    every = f"({every})"
    segments = regex_split(texts, every, every)
    strings = segments.values
    for plain, escaped in reversed(_ESCAPES):
        strings = tf.strings.regex_replace(strings, escaped, plain)
    ids = tf.fill([tf.size(strings)], NOT_SPECIAL)
    for name, pattern in patterns.items():
        is_name = tf.strings.regex_full_match(strings, pattern)
        ids = tf.where(is_name, vocabulary.id_of(name), ids)
    return Segments(strings, ids, segments.row_splits)

"""Words of natural language, as corpora count them, over the tokens of a text.

BERT's own words end at every punctuation mark; those of corpora of named entities do not: "U.K",
"well-known" and "didn't" are one word, a full stop after a word is another.
"""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from kbert.text.graph_functions import kept_values, row_ids
from kbert.text.tokenizer import TokenOffsets
from kbert.text.vocabulary import Vocabulary
from kbert.text.wordpiece.normalization import IDEOGRAPHS, PUNCTUATION, code_points, is_member

_MARKS = frozenset(code_points(PUNCTUATION).tolist())
# These belong to the word that they begin: @user, #topic.
_PREFIXES = ("@", "#")
_APOSTROPHES = ("'", "’")
_POSSESSIVES = ("'s", "’s")  # as one token, where tokens are bytes


class Units(NamedTuple):
    """Words of rows, as runs of tokens. All are ragged int32 (B, (words))."""

    first: tf.RaggedTensor  # the first token of each word, as an index in its row
    last: tf.RaggedTensor  # its last token


def every_token(offsets: TokenOffsets) -> Units:
    """Treats each token as a word of its own, as graph code."""
    return _units(offsets, tf.ones_like(offsets.token_ids.values, tf.bool))


def spaced_words(text: tf.Tensor, offsets: TokenOffsets) -> tuple[Units, tf.RaggedTensor]:
    """Splits words of texts (B,) at blanks (U+0020), as graph code.

    Returns the words that have tokens, and the index of each among the words of its row, ragged
    int32 (B, (words)); two blanks have an empty word between them.
    """
    words = tf.strings.split(text, " ")
    length = tf.strings.length(words.values) + 1
    before = tf.cumsum(length, exclusive=True)
    row_before = tf.gather(tf.pad(before, [[0, 1]]), words.row_splits[:-1])
    row_of_word = row_ids(words)
    start = tf.cast(before - tf.gather(row_before, row_of_word), tf.int64)
    # One key for row and byte: rows are far apart.
    reach = tf.cast(tf.reduce_max(tf.pad(tf.strings.length(text), [[0, 1]])) + 2, tf.int64)
    keys = row_of_word * reach + start
    row = row_ids(offsets.token_ids)
    token_keys = row * reach + tf.cast(offsets.start_byte.values, tf.int64)
    word = tf.cast(tf.searchsorted(keys, token_keys, side="right"), tf.int64) - 1
    word -= tf.gather(words.row_splits, row)
    begins = _first_of_row(offsets) | (word != tf.roll(word, 1, axis=0))
    tokens = offsets.token_ids
    words = tokens.with_values(tf.cast(word, tf.int32))
    return _units(offsets, begins), kept_values(words, begins)


def text_words(offsets: TokenOffsets, vocabulary: Vocabulary) -> Units:
    """Finds the words of running text, as graph code.

    A word is what lies between spaces, without the punctuation before and after it; each such mark
    is a word of its own, as is an English 's. So is each ideograph, where it is a token.
    """
    ids = offsets.token_ids.values
    byte_level = vocabulary.special_tokens.byte_level
    texts = [vocabulary.text_of(token).strip() for token in vocabulary.tokens]

    def those(kind: Callable[[str], bool]) -> tf.Tensor:
        return tf.gather(tf.constant([kind(text) for text in texts]), ids)

    # A token of bytes may be several marks.
    is_mark = those(lambda text: bool(text) and _MARKS.issuperset(map(ord, text)))
    apart = offsets.start_byte.values > tf.roll(offsets.end_byte.values, 1, axis=0)
    if not byte_level:
        # A word may contain characters of no token: accents, zero-width characters.
        inside = [vocabulary.continues_word(token) for token in vocabulary.tokens]
        continues = tf.gather(tf.constant(inside), ids)
        apart &= ~continues
        ideographs = is_member(IDEOGRAPHS)
        alone = [
            len(text) == 1 and bool(ideographs[ord(text)]) and not goes_on
            for text, goes_on in zip(texts, inside, strict=True)
        ]
        is_ideograph = tf.gather(tf.constant(alone), ids)
        apart |= is_ideograph | tf.roll(is_ideograph, 1, axis=0) & ~continues
    gap = _first_of_row(offsets) | apart
    last_of_word = tf.roll(gap, -1, axis=0)  # the first token of all begins a row
    # @ and # before a letter or digit belong to the word.
    followed = ~last_of_word & ~tf.roll(is_mark, -1, axis=0)
    is_mark &= ~(gap & followed & those(lambda token: token in _PREFIXES))
    word = tf.cumsum(tf.cast(gap, tf.int32)) - 1
    plain = tf.cast(~is_mark, tf.int32)
    words = tf.reduce_max(tf.pad(word + 1, [[0, 1]]))
    total = tf.math.unsorted_segment_sum(plain, word, words)
    up_to = tf.cumsum(plain)
    in_word = up_to - tf.gather(tf.cumsum(total, exclusive=True), word)  # itself included
    outer = is_mark & ((in_word == 0) | (in_word == tf.gather(total, word)))
    is_end = last_of_word | tf.roll(outer, -1, axis=0)
    ends_in_s = those(lambda token: token == "s") & is_end
    inner = ~gap & ~last_of_word & those(lambda token: token in _APOSTROPHES)
    possessive = inner & tf.roll(ends_in_s, -1, axis=0)
    possessive |= ~gap & is_end & those(lambda token: token in _POSSESSIVES)
    return _units(offsets, gap | outer | tf.roll(outer, 1, axis=0) | possessive)


def _units(offsets: TokenOffsets, begins: tf.Tensor) -> Units:
    """Makes words from the tokens (flat, bool) that begin one."""
    place = offsets.token_ids.with_values(_places(offsets))
    ends = tf.roll(begins, -1, axis=0)  # the token after the last is the first, which begins one
    return Units(kept_values(place, begins), kept_values(place, ends))


def _first_of_row(offsets: TokenOffsets) -> tf.Tensor:
    return tf.equal(_places(offsets), 0)


def _places(offsets: TokenOffsets) -> tf.Tensor:
    """Returns the place of each token in its row, flat."""
    lengths = tf.cast(offsets.token_ids.row_lengths(), tf.int32)
    return tf.ragged.range(lengths).values

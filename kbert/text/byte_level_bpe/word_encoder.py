"""Tokens of words: whole words that are tokens are looked up, and the others merged.

Shapes: W words, D distinct words, K tokens that are words of their own.
"""

import tensorflow as tf

from kbert.text.byte_level_bpe.merge_table import MergeTable
from kbert.text.byte_level_bpe.merging import Merger
from kbert.text.vocabulary import Vocabulary, byte_characters

_NUM_HASHES = (1 << 63) - 1
_NONE = -1


class WordEncoder:
    """Maps words to tokens, each distinct word of a batch once."""

    def __init__(self, vocabulary: Vocabulary, table: MergeTable) -> None:
        self._merger = Merger(table)
        byte_of = {one: byte for byte, one in enumerate(byte_characters())}
        spelled = [
            bytes(map(byte_of.__getitem__, token))
            for token in vocabulary.tokens
            # One of other characters, such as an added one, is in no text.
            if not vocabulary.is_special(token) and byte_of.keys() >= set(token)
        ]
        # Eager constants: every graph that uses them captures the same ones.
        with tf.init_scope(), tf.device("CPU:0"):
            words = tf.constant(spelled)
            merged = self._merger.merge(words)
            # A token that merges do not lead to is in no text, though a word may be spelled so.
            is_reached = tf.equal(merged.row_lengths(), 1)
            words = tf.boolean_mask(words, is_reached)
            hashes = tf.strings.to_hash_bucket_fast(words, _NUM_HASHES)
            order = tf.argsort(hashes)
            self._hashes = tf.gather(hashes, order)
            self._words = tf.gather(words, order)
            first = tf.boolean_mask(merged.row_starts(), is_reached)
            self._ids = tf.gather(merged.values, tf.gather(first, order))

    def encode(self, words: tf.Tensor) -> tf.RaggedTensor:
        """Returns the tokens of words, string (W,), none empty: ragged int32 (W, (tokens))."""
        distinct, place = tf.unique(words)
        known = self._known(distinct)
        at = tf.where(tf.equal(known, _NONE))
        merged = self._merger.merge(tf.gather_nd(distinct, at))
        # Lists of tokens one after the other: one token for each distinct word, then the merged.
        tokens = tf.concat([known, merged.values], axis=0)
        count = tf.size(known, tf.int64)
        begin = tf.range(count)
        end = tf.tensor_scatter_nd_update(begin + 1, at, count + merged.row_limits())
        begin = tf.tensor_scatter_nd_update(begin, at, count + merged.row_starts())
        places = tf.ragged.range(tf.gather(begin, place), tf.gather(end, place))
        return places.with_values(tf.gather(tokens, places.values))

    def _known(self, words: tf.Tensor) -> tf.Tensor:
        """Returns the token that each word is, int32 (D,), _NONE if it is several."""
        hashes = tf.strings.to_hash_bucket_fast(words, _NUM_HASHES)
        place = tf.searchsorted(self._hashes, hashes)
        place = tf.minimum(place, tf.size(self._hashes) - 1)
        return tf.where(
            tf.equal(tf.gather(self._words, place), words), tf.gather(self._ids, place), _NONE
        )

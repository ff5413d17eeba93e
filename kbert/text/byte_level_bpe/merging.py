"""Byte-pair encoding of many words at once, as a graph.

The words stand one after the other, and each step merges at least one pair of every word that has
one. Usual words merge their pairs of the least rank, and free pairs between higher ones. A long
word would take a step for each rank that it comes by, so it merges all pairs that no other merge
can get ahead of.

A gather of one number takes longer than most other ops on it together, so what is known of a token
is one number, and what is known of a merge is another.

Source: Sennrich et al. 2016, "Neural Machine Translation of Rare Words with Subword Units", section
3.2, with equal pairs merged from left to right, as Hugging Face `tokenizers` does.

Shapes: W words, n tokens of the words that are not finished.
"""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from kbert.text.byte_level_bpe.merge_table import (
    FREE_BIT,
    NO_KEY,
    NO_RANK,
    RANK_SHIFT,
    TOKEN_BITS,
    TOKEN_MASK,
    MergeTable,
)
from kbert.text.byte_level_bpe.neighbours import following, previous

_LONG_WORD = 100  # bytes
# A token of a word: its id, whether the word begins with it, and the number of the word, from the
# highest bit down.
_ID_SHIFT = 32
_FIRST_BIT = 1 << 31
_WORD_MASK = _FIRST_BIT - 1
# Parts of the tokens after a step: of finished words, of others, and those merged with the one
# before. The first two are 0 and 1.
_GONE = 2


class _State(NamedTuple):
    """The tokens of the words that are not finished, one after the other, int64 (n,).

    The first token begins a word and the last one has the key NO_KEY: where the one follows on the
    other, as in `_next`, that is the border of two words.
    """

    tokens: tf.Tensor
    keys: tf.Tensor  # of the pair of each token and the next one of its word


class _Step(NamedTuple):
    """A choice of a rule, bool (n,)."""

    chosen: tf.Tensor  # tokens to merge with the next one; no two of them are neighbours
    is_active: tf.Tensor  # False for the tokens of finished words


class Merger:
    """Merges the bytes of words to tokens; its table lives in the graph as constants."""

    def __init__(self, table: MergeTable) -> None:
        self._has_sudden = bool(table.is_sudden.any())
        # Eager constants: every graph that uses them captures the same ones. On the CPU, where the
        # string kernels are, otherwise a machine with a GPU would copy them at each call.
        with tf.init_scope(), tf.device("CPU:0"):
            self._byte_tokens = tf.constant(table.byte_ids << _ID_SHIFT)
            self._byte_pair_keys = tf.constant(table.byte_pair_keys)
            self._row_starts = tf.constant(table.row_starts)
            self._slot_keys = tf.constant(table.slot_keys)
            self._is_sudden = tf.constant(table.is_sudden)
            self._least_as_left = tf.constant(table.least_as_left)
            self._least_as_right = tf.constant(table.least_as_right)
        # Not inlined: a branch that is not taken then costs one node, not all of them.
        self._merge_with_long = tf.function(
            self._merge_by_length,
            autograph=False,
            experimental_attributes={"_noinline": True},
            input_signature=[tf.TensorSpec([None], tf.string), tf.TensorSpec([None], tf.int32)],
        )

    def merge(self, words: tf.Tensor) -> tf.RaggedTensor:
        """Returns the tokens of words, string (W,), none empty: ragged int32 (W, (tokens))."""
        lengths = tf.strings.length(words)
        if self._has_sudden:
            return _ragged(*self._merge_all(words, lengths, self._of_least_rank))
        return _ragged(
            *tf.cond(
                tf.reduce_any(lengths > _LONG_WORD),
                lambda: self._merge_with_long(words, lengths),
                lambda: self._merge_all(words, lengths, self._of_least_rank),
            )
        )

    def _merge_by_length(
        self, words: tf.Tensor, lengths: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        is_long = lengths > _LONG_WORD
        usual, long = tf.where(~is_long)[:, 0], tf.where(is_long)[:, 0]

        def merged_at(at: tf.Tensor, rule: Callable[[_State], _Step]) -> tf.RaggedTensor:
            return _ragged(*self._merge_all(tf.gather(words, at), tf.gather(lengths, at), rule))

        merged = tf.concat(
            [merged_at(usual, self._of_least_rank), merged_at(long, self._not_got_ahead_of)], axis=0
        )
        place = tf.math.invert_permutation(tf.concat([usual, long], axis=0))
        merged = tf.gather(merged, place)
        return merged.values, merged.row_splits

    def _merge_all(
        self, words: tf.Tensor, lengths: tf.Tensor, rule: Callable[[_State], _Step]
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Merges until no pair is left: the tokens, int32, and the splits of words, int64 (W + 1,).

        `lengths` has the bytes of the words, int32 (W,).
        """
        numbers = tf.cast(tf.io.decode_raw(tf.strings.reduce_join(words), tf.uint8), tf.int32)
        begins = tf.cumsum(lengths, exclusive=True)[:, tf.newaxis]
        is_first = tf.scatter_nd(begins, tf.ones_like(lengths, tf.int64), tf.shape(numbers))
        tokens = tf.gather(self._byte_tokens, numbers) + is_first * _FIRST_BIT
        tokens += tf.cumsum(is_first) - 1
        keys = tf.gather(self._byte_pair_keys, numbers * 256 + _next(numbers))
        keys = tf.where(_is_inner(_next(tokens)), keys, NO_KEY)
        spec = tf.TensorShape([None])
        _, finished = tf.while_loop(
            lambda state, _: tf.size(state.tokens) > 0,
            lambda state, finished: self._merged(state, rule(state), finished),
            (_State(tokens, keys), tf.zeros([0], tf.int64)),
            shape_invariants=(_State(spec, spec), spec),
            parallel_iterations=1,
        )
        # The tokens of a word are finished in one step, and stand in their order.
        firsts = tf.where(~_is_inner(finished))[:, 0]
        place = tf.math.invert_permutation(_word(tf.gather(finished, firsts)))
        ids = tf.cast(tf.bitwise.right_shift(finished, _ID_SHIFT), tf.int32)
        splits = tf.concat([firsts, [tf.size(ids, tf.int64)]], axis=0)
        merged = tf.gather(_ragged(ids, splits), place)
        return merged.values, merged.row_splits

    def _merged(
        self, state: _State, step: _Step, finished: tf.Tensor
    ) -> tuple[_State, tf.Tensor]:
        """Replaces the chosen pairs, and moves the tokens of finished words to `finished`."""
        made = tf.bitwise.bitwise_and(state.keys, TOKEN_MASK)
        merged = tf.bitwise.left_shift(made, _ID_SHIFT)
        low_bits = tf.bitwise.bitwise_and(state.tokens, (1 << _ID_SHIFT) - 1)
        tokens = tf.where(step.chosen, merged + low_bits, state.tokens)
        part = tf.cast(step.is_active, tf.int32)
        part = tf.where(_before(step.chosen), _GONE, part)
        new, tokens, _ = tf.dynamic_partition(tokens, part, _GONE + 1)
        ids = tf.bitwise.right_shift(tokens, _ID_SHIFT)
        after = _next(tokens)
        slot = tf.gather(self._row_starts, ids) + tf.bitwise.right_shift(after, _ID_SHIFT)
        keys = tf.gather(self._slot_keys, slot)
        left = tf.bitwise.bitwise_and(tf.bitwise.right_shift(keys, TOKEN_BITS), TOKEN_MASK)
        keys = tf.where(tf.equal(left, ids) & _is_inner(after), keys, NO_KEY)
        return _State(tokens, keys), tf.concat([finished, new], axis=0)

    def _of_least_rank(self, state: _State) -> _Step:
        """Chooses the pairs of the least rank of each word, and the free ones between higher ranks.

        Of pairs of one rank that overlap only the first one is chosen.
        """
        keys = state.keys
        word = _word(state.tokens)
        least = tf.gather(tf.math.segment_min(keys, word), word)
        is_free = tf.cast(tf.bitwise.bitwise_and(keys, FREE_BIT), tf.bool)
        is_free &= keys < _next(keys)
        chosen = (keys < _before(keys)) & (tf.equal(keys, least) | is_free)
        if self._has_sudden:
            at = tf.where(chosen)
            rank = tf.bitwise.right_shift(tf.gather_nd(keys, at), RANK_SHIFT)
            word = tf.gather_nd(word, at)
            is_first = tf.not_equal(word, previous(word, -1))
            is_usual = ~tf.gather(self._is_sudden, rank)
            chosen = tf.tensor_scatter_nd_update(chosen, at, is_first | is_usual)
        return _Step(chosen, least < NO_KEY)

    def _not_got_ahead_of(self, state: _State) -> _Step:
        """Chooses every pair whose merge is the first one at its place and at both places beside.

        A place lies between two tokens of a word. `bound` is the least rank that the first merge
        there can have. It is the rank of the pair that is there now; or the left token has changed
        before, by a merge at the place before, and then the new pair comes later than that merge,
        and has the rank of a merge with this right token; or the right token has changed; or both.
        The largest numbers that fulfil this at all places are bounds: in order of time, no merge
        can be the first to break them.
        """
        ranks = tf.cast(tf.bitwise.right_shift(state.keys, RANK_SHIFT), tf.int32)
        ids = tf.bitwise.right_shift(state.tokens, _ID_SHIFT)
        is_inner = _is_inner(_next(state.tokens))
        least_of_left = tf.gather(self._least_as_left, ids)
        least_of_right = following(tf.gather(self._least_as_right, ids), NO_RANK)

        def lowered(bound: tf.Tensor, _: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            before, after = previous(bound, NO_RANK) + 1, following(bound, NO_RANK) + 1
            new = tf.minimum(ranks, tf.maximum(before, least_of_right))
            new = tf.minimum(new, tf.maximum(after, least_of_left))
            new = tf.where(is_inner, tf.minimum(new, tf.maximum(before, after)), NO_RANK)
            return new, tf.reduce_any(new < bound)

        spec = tf.TensorShape([None])
        bound, _ = tf.while_loop(
            lambda _, goes_on: goes_on,
            lowered,
            (ranks, tf.constant(True)),
            shape_invariants=(spec, tf.TensorShape([])),
            parallel_iterations=1,
        )
        before, after = previous(bound, NO_RANK), following(bound, NO_RANK)
        follows = (ranks < NO_RANK) & tf.equal(ranks, previous(ranks, NO_RANK))
        is_free = (ranks < NO_RANK) & (after >= ranks)
        is_free &= (before > ranks) | (follows & tf.equal(before, ranks))
        # Equal pairs that overlap are merged together or not at all.
        run = tf.cumsum(tf.cast(~follows, tf.int32)) - 1
        is_free_run = tf.math.segment_min(tf.cast(is_free, tf.int32), run) > 0
        position = tf.range(tf.size(run))
        is_even = tf.equal((position - tf.gather(tf.boolean_mask(position, ~follows), run)) % 2, 0)
        is_active = tf.fill(tf.shape(ranks), tf.reduce_any(ranks < NO_RANK))
        return _Step(tf.gather(is_free_run, run) & is_even, is_active)


def _is_inner(tokens: tf.Tensor) -> tf.Tensor:
    """Returns which tokens are not the first of their words."""
    return tf.equal(tf.bitwise.bitwise_and(tokens, _FIRST_BIT), 0)


def _word(tokens: tf.Tensor) -> tf.Tensor:
    """Returns the numbers of the words of tokens."""
    return tf.bitwise.bitwise_and(tokens, _WORD_MASK)


def _next(values: tf.Tensor) -> tf.Tensor:
    """Returns the value after each one, and the first one after the last one: (n,)."""
    return tf.roll(values, -1, 0)


def _before(values: tf.Tensor) -> tf.Tensor:
    """Returns the value before each one, and the last one before the first one: (n,)."""
    return tf.roll(values, 1, 0)


def _ragged(values: tf.Tensor, row_splits: tf.Tensor) -> tf.RaggedTensor:
    values.set_shape([None])  # a function that is not inlined has none
    row_splits.set_shape([None])
    return tf.RaggedTensor.from_row_splits(values, row_splits, validate=False)

"""Byte-pair encoding of many words at once, as a graph.

The words stand one after the other, and each step merges at least one pair of every word that has
one. Usual words merge their pairs of the least rank. A long word would take a step for each rank
that it comes by, so it merges all pairs that no other merge can get ahead of.

Source: Sennrich et al. 2016, "Neural Machine Translation of Rare Words with Subword Units", section
3.2, with equal pairs merged from left to right, as Hugging Face `tokenizers` does.

Shapes: W words, n tokens of all words so far.
"""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from kbert.text.byte_level_bpe.merge_table import NO_RANK, MergeTable
from kbert.text.byte_level_bpe.neighbours import following, previous

_LONG_WORD = 100  # bytes
_INSIDE = -1  # of a byte at which no token begins


class _State(NamedTuple):
    """The tokens of the words that are not finished, one after the other, int32 (n,)."""

    tokens: tf.Tensor
    ranks: tf.Tensor  # of the pair of each token and the next one of its word
    words: tf.Tensor  # ascending
    places: tf.Tensor  # the first byte of each token among those of all words, ascending


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
            self._byte_ids = tf.constant(table.byte_ids)
            self._byte_pair_ranks = tf.constant(table.byte_pair_ranks)
            self._row_starts = tf.constant(table.row_starts)
            self._slot_ranks = tf.constant(table.slot_ranks)
            self._lefts = tf.constant(table.lefts)
            self._results = tf.constant(table.results)
            self._is_sudden = tf.constant(table.is_sudden)
            self._least_as_left = tf.constant(table.least_as_left)
            self._least_as_right = tf.constant(table.least_as_right)
        # Not inlined: a branch that is not taken then costs one node, not all of them.
        self._merge_with_long = tf.function(
            self._merge_by_length,
            autograph=False,
            experimental_attributes={"_noinline": True},
            input_signature=[tf.TensorSpec([None], tf.string), tf.TensorSpec([None], tf.bool)],
        )

    def merge(self, words: tf.Tensor) -> tf.RaggedTensor:
        """Returns the tokens of words, string (W,), none empty: ragged int32 (W, (tokens))."""
        if self._has_sudden:
            return _ragged(*self._merge_all(words, self._of_least_rank))
        is_long = tf.strings.length(words) > _LONG_WORD
        return _ragged(
            *tf.cond(
                tf.reduce_any(is_long),
                lambda: self._merge_with_long(words, is_long),
                lambda: self._merge_all(words, self._of_least_rank),
            )
        )

    def _merge_by_length(
        self, words: tf.Tensor, is_long: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        usual, long = tf.where(~is_long)[:, 0], tf.where(is_long)[:, 0]
        merged = tf.concat(
            [
                _ragged(*self._merge_all(tf.gather(words, usual), self._of_least_rank)),
                _ragged(*self._merge_all(tf.gather(words, long), self._not_got_ahead_of)),
            ],
            axis=0,
        )
        place = tf.math.invert_permutation(tf.concat([usual, long], axis=0))
        merged = tf.gather(merged, place)
        return merged.values, merged.row_splits

    def _merge_all(
        self, words: tf.Tensor, rule: Callable[[_State], _Step]
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Merges until no pair is left: the tokens, int32, and the splits of words, int64 (W + 1,).
        """
        lengths = tf.strings.length(words)
        numbers = tf.cast(tf.io.decode_raw(tf.strings.reduce_join(words), tf.uint8), tf.int32)
        word = tf.repeat(tf.range(tf.size(words)), lengths)
        is_inner = tf.equal(word, following(word, -1))
        pair = numbers * 256 + following(numbers, 0)
        ranks = tf.where(is_inner, tf.gather(self._byte_pair_ranks, pair), NO_RANK)
        tokens = tf.gather(self._byte_ids, numbers)
        first = _State(tokens, ranks, word, tf.range(tf.size(tokens)))
        spec = tf.TensorShape([None])
        # The tokens of all words, each at its first byte, stand in an array of their own.
        _, tokens = tf.while_loop(
            lambda state, _: tf.reduce_any(state.ranks < NO_RANK),
            lambda state, all_tokens: self._merged(state, rule(state), all_tokens),
            (first, tokens),
            shape_invariants=(_State(spec, spec, spec, spec), spec),
            parallel_iterations=1,
        )
        is_token = tokens > _INSIDE
        tokens_before = tf.concat([[0], tf.cumsum(tf.cast(is_token, tf.int64))], axis=0)
        byte_splits = tf.concat([[0], tf.cumsum(lengths)], axis=0)
        return tf.boolean_mask(tokens, is_token), tf.gather(tokens_before, byte_splits)

    def _merged(
        self, state: _State, step: _Step, all_tokens: tf.Tensor
    ) -> tuple[_State, tf.Tensor]:
        """Replaces the chosen pairs, and drops words that are finished."""
        at = tf.where(step.chosen)
        results = tf.gather(self._results, tf.gather_nd(state.ranks, at))
        changed = tf.gather(state.places, tf.concat([at, at + 1], axis=0))
        values = tf.concat([results, tf.fill(tf.shape(results), _INSIDE)], axis=0)
        all_tokens = tf.tensor_scatter_nd_update(all_tokens, changed, values)

        kept = tf.where(step.is_active & ~previous(step.chosen, False))[:, 0]
        words, places = tf.gather(state.words, kept), tf.gather(state.places, kept)
        tokens = tf.gather(all_tokens, places)
        is_inner = tf.equal(words, following(words, -1))
        ranks = tf.where(is_inner, self._ranks_of(tokens, following(tokens, 0)), NO_RANK)
        return _State(tokens, ranks, words, places), all_tokens

    def _ranks_of(self, left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
        """Returns the rank of each pair of tokens, NO_RANK if it has none."""
        slot = tf.gather(self._row_starts, left) + right
        rank = tf.gather(self._slot_ranks, slot)
        return tf.where(tf.equal(tf.gather(self._lefts, rank), left), rank, NO_RANK)

    def _of_least_rank(self, state: _State) -> _Step:
        """Chooses the pairs of the least rank of each word, of those that overlap the first one."""
        least = tf.gather(tf.math.segment_min(state.ranks, state.words), state.words)
        is_active = least < NO_RANK
        chosen = tf.equal(state.ranks, least) & is_active
        chosen &= ~previous(chosen, False)
        if self._has_sudden:
            at = tf.where(chosen)
            word = tf.gather_nd(state.words, at)
            is_first = tf.not_equal(word, previous(word, -1))
            is_usual = ~tf.gather(self._is_sudden, tf.gather_nd(state.ranks, at))
            chosen = tf.tensor_scatter_nd_update(chosen, at, is_first | is_usual)
        return _Step(chosen, is_active)

    def _not_got_ahead_of(self, state: _State) -> _Step:
        """Chooses every pair whose merge is the first one at its place and at both places beside.

        A place lies between two tokens of a word. `bound` is the least rank that the first merge
        there can have. It is the rank of the pair that is there now; or the left token has changed
        before, by a merge at the place before, and then the new pair comes later than that merge,
        and has the rank of a merge with this right token; or the right token has changed; or both.
        The largest numbers that fulfil this at all places are bounds: in order of time, no merge
        can be the first to break them.
        """
        ranks = state.ranks
        is_inner = tf.equal(state.words, following(state.words, -1))
        least_of_left = tf.gather(self._least_as_left, state.tokens)
        least_of_right = following(tf.gather(self._least_as_right, state.tokens), NO_RANK)

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
        return _Step(tf.gather(is_free_run, run) & is_even, tf.ones_like(follows))


def _ragged(values: tf.Tensor, row_splits: tf.Tensor) -> tf.RaggedTensor:
    values.set_shape([None])  # a function that is not inlined has none
    row_splits.set_shape([None])
    return tf.RaggedTensor.from_row_splits(values, row_splits, validate=False)

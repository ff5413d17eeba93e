"""Choice of words, or runs of words, to mask, as graph code.

What google-research/bert and Model Garden do one example at a time with lists (`_masking_ngrams` of
`official/nlp/data/create_pretraining_data.py`), here for all examples of a batch at once: draw a
number of words, take the next run of as many words in random order, and keep it if it is not too
long and none of it is taken yet; repeat until enough is taken or nothing is left to try.

Shapes: B rows, T tokens, K the most words of a run.
"""

from typing import NamedTuple

import tensorflow as tf

from kbert.text.masking.stateless_random import random_uniform

_KEYS, _SIZES = 0, 1 << 22  # offsets of the numbers of each purpose


class _Runs(NamedTuple):
    """The runs of words of each length, in the random order in which they are tried."""

    begin: tf.Tensor  # int32 (B, K, T), first token of each run
    end: tf.Tensor  # int32 (B, K, T), the token after its last
    count: tf.Tensor  # int32 (B, K), how many of these are runs; the rest is padding


class _State(NamedTuple):
    """Loop state of the choice."""

    round: tf.Tensor  # int32 (), finished rounds
    tried: tf.Tensor  # int32 (B, K), how many runs of each length have been tried
    left: tf.Tensor  # int32 (B,), tokens that may still be taken
    # int32 (B, T), the first token of the run that each taken token belongs to, else -1.
    unit: tf.Tensor


def _next_run(
    runs: _Runs, state: _State, size: tf.Tensor, going_on: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns first token, and the one after the last, int32 (B,), of the next run of a length."""
    place = tf.stack([size, tf.gather(state.tried, size, batch_dims=1)], axis=1)
    place = tf.where(going_on[:, tf.newaxis], place, 0)
    begin = tf.gather_nd(runs.begin, place, batch_dims=1)
    return begin, tf.gather_nd(runs.end, place, batch_dims=1)


def chosen_words(
    may_be_chosen: tf.Tensor,
    continues: tf.Tensor,
    budget: tf.Tensor,
    ngram: int,
    seeds: tf.Tensor,
    first_number: int = 0,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Chooses runs of whole words.

    A word begins at a token that may be chosen and does not continue a word, or follows one that
    may not be chosen. Runs never cross a token that may not be chosen.

    Args:
        may_be_chosen: bool (B, T).
        continues: bool (B, T), whether a token continues the word of the previous one.
        budget: int32 (B,), the most tokens that are chosen.
        ngram: K, the most words of a run; a run of k words has the weight 1/k.
        seeds: int64 (B,), see `kbert.text.masking.stateless_random`.
        first_number: first index in the examples' random sequences; 2^23 numbers are reserved.

    Returns:
        Bool (B, T), which tokens are chosen; int32 (B, T), the first token of the run of each.
    """
    runs = _shuffled_runs(may_be_chosen, continues, ngram, seeds, first_number + _KEYS)
    lengths = tf.range(1, ngram + 1)
    weights = 1.0 / tf.cast(lengths, tf.float32)
    columns = tf.range(tf.shape(may_be_chosen)[1])

    def usable(state: _State) -> tf.Tensor:
        # Lengths that may be drawn, bool (B, K): runs remain, and may be short enough.
        return (state.tried < runs.count) & (lengths <= state.left[:, tf.newaxis])

    def advance(*values: tf.Tensor) -> tuple[tf.Tensor, ...]:
        state = _State(*values)
        may_be_drawn = usable(state)
        going_on = tf.reduce_any(may_be_drawn, axis=1)
        drawn = random_uniform(seeds, first_number + _SIZES + state.round[tf.newaxis])
        size = _weighted(tf.where(may_be_drawn, weights, 0.0), drawn)  # (B,)
        begin, end = _next_run(runs, state, size, going_on)
        inside = (columns >= begin[:, tf.newaxis]) & (columns < end[:, tf.newaxis])
        is_free = ~tf.reduce_any(inside & (state.unit >= 0), axis=1)
        taken = going_on & is_free & (end - begin <= state.left)
        one = tf.one_hot(size, ngram, dtype=tf.int32)
        return _State(
            round=state.round + 1,
            tried=state.tried + tf.where(going_on[:, tf.newaxis], one, 0),
            left=state.left - tf.where(taken, end - begin, 0),
            unit=tf.where(inside & taken[:, tf.newaxis], begin[:, tf.newaxis], state.unit),
        )

    begin = _State(
        round=tf.constant(0),
        tried=tf.zeros_like(runs.count),
        left=budget,
        unit=-tf.ones_like(may_be_chosen, tf.int32),
    )
    last = tf.while_loop(lambda *state: tf.reduce_any(usable(_State(*state))), advance, begin)
    unit = _State(*last).unit
    return unit >= 0, tf.maximum(unit, 0)


def _shuffled_runs(
    may_be_chosen: tf.Tensor, continues: tf.Tensor, ngram: int, seeds: tf.Tensor, first_number: int
) -> _Runs:
    width = tf.shape(may_be_chosen)[1]
    columns = tf.range(width)
    follows = tf.pad(may_be_chosen[:, :-1], [[0, 0], [1, 0]])
    is_inside = may_be_chosen & continues & follows
    # Start positions of words and of tokens that may not be chosen, then padding.
    begin = tf.sort(tf.where(is_inside, width, columns))
    starts_word = tf.gather(may_be_chosen, tf.minimum(begin, width - 1), batch_dims=1)
    is_word = (begin < width) & starts_word
    found = []
    for words in range(1, ngram + 1):
        is_run = is_word
        for further in range(1, words):
            is_run &= _ahead(is_word, further, False)
        keys = random_uniform(seeds, first_number + columns * ngram + words - 1)
        order = tf.argsort(tf.where(is_run, keys, 2.0))
        end = _ahead(begin, words, width)
        shuffled = (tf.gather(side, order, batch_dims=1) for side in (begin, end))
        found.append((*shuffled, tf.reduce_sum(tf.cast(is_run, tf.int32), axis=1)))
    return _Runs(*(tf.stack(column, axis=1) for column in zip(*found)))


def _ahead(values: tf.Tensor, by: int, filler: tf.Tensor | bool) -> tf.Tensor:
    """Shifts values left by `by` columns, (B, T)."""
    rows, width = tf.unstack(tf.shape(values))
    missing = tf.fill((rows, by), filler)
    return tf.concat([values, missing], axis=1)[:, by : by + width]


def _weighted(weights: tf.Tensor, drawn: tf.Tensor) -> tf.Tensor:
    """Returns the index that a uniform number chooses among weights (B, K), int32 (B,)."""
    bounds = tf.cumsum(weights, axis=1)
    passed = tf.cast(drawn * bounds[:, -1:] >= bounds, tf.int32)
    return tf.minimum(tf.reduce_sum(passed, axis=1), tf.shape(weights)[1] - 1)

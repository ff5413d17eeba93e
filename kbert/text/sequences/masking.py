"""Masking for masked language modeling: tokens chosen and masked by seed, and filled, as graphs.

Source: Devlin et al. 2019, "BERT", section 3.1 (task 1) and appendix A.1; google-research/bert
`create_pretraining_data.py`, `create_masked_lm_predictions`. Whole words: the note of May 2019 in
the README there. N-grams: Joshi et al. 2020, "SpanBERT", and Sun et al. 2019, "ERNIE"; chosen and
replaced as in Model Garden's `official/nlp/data/create_pretraining_data.py`.

What these do with words one example at a time (`_masking_ngrams`) is done here for all examples of
a batch at once: draw a number of words, take the next run of as many words in random order, and
keep it if it is not too long and none of it is taken yet; repeat until enough is taken or nothing
is left to try.

Shapes: B rows, T tokens, P predictions, K the most words of a run.
"""

import re
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from kbert.text.sequences.stateless_random import random_index, random_uniform
from kbert.text.vocabulary import CONTINUES, SpecialTokens, Vocabulary

_UNUSED = re.compile(r"\[unused\d+\]")
# Of the chosen tokens: shares that become [MASK], and [MASK] or a random token.
_MASKED, _CHANGED = 0.8, 0.9
# Offsets of the numbers of each purpose in an example's random sequence; the last are those of the
# numbers of words in a run.
_ACTION, _REPLACEMENT, _CHOICE, _SIZES = 0, 1 << 24, 2 << 24, (2 << 24) + (1 << 22)


class Masked(NamedTuple):
    """A masked batch."""

    token_ids: tf.Tensor  # int32 (B, T), with chosen tokens masked or replaced
    positions: tf.Tensor  # int32 (B, P), the positions of the chosen tokens, sorted; 0 for padding
    targets: tf.Tensor  # int32 (B, P), the original tokens there; -1 for padding


class TokenMasking:
    """Chooses tokens and masks them: 80 % [MASK], 10 % a random token, 10 % unchanged.

    Of an example of n tokens, `[CLS]` and `[SEP]` included, `max(1, round(share * n))` are chosen,
    counted like google-research/bert, and at most `max_predictions`. No special token of the text
    is chosen, [UNK] included, and nothing becomes one but [MASK]. A random token is any ordinary
    one with equal probability: no special one, no `[unused7]`.

    With `whole_words`, all pieces of a word or none are chosen, and all are treated the same. Words
    are taken in random order, and one that is longer than the remaining budget is skipped. With
    `ngram` n, runs of up to n words are taken; a run of k words has the weight 1/k.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        max_predictions: int,
        share: float = 0.15,
        whole_words: bool = False,
        ngram: int = 1,
    ) -> None:
        if not vocabulary.has_mask:
            mask = vocabulary.special_tokens.mask
            raise ValueError(f"`vocabulary` must have the token {mask}. Received: {vocabulary!r}")
        if not 0.0 < share < 1.0:
            raise ValueError(f"`share` must be between 0 and 1. Received: share={share}")
        if max_predictions < 1:
            raise ValueError(
                f"`max_predictions` must be at least 1. Received: max_predictions={max_predictions}"
            )
        if ngram < 1 or (ngram > 1 and not whole_words):
            raise ValueError(
                "`ngram` must be at least 1, and 1 without `whole_words`. "
                f"Received: ngram={ngram}, whole_words={whole_words}"
            )
        self.vocabulary = vocabulary
        self.max_predictions = max_predictions
        self.share = share
        self.whole_words = whole_words
        self.ngram = ngram
        tokens = vocabulary.tokens
        self._special = np.array([vocabulary.is_special(token) for token in tokens])
        unused = np.array([_UNUSED.fullmatch(token) is not None for token in tokens])
        self._ordinary = np.flatnonzero(~self._special & ~unused).astype("int32")
        if not len(self._ordinary):
            raise ValueError(
                "`vocabulary` must have tokens that are not special. "
                f"Received: {len(tokens)} special or unused tokens"
            )
        self._continues = np.array([vocabulary.continues_word(token) for token in tokens])

    def mask(self, token_ids: tf.Tensor, padding_mask: tf.Tensor, seeds: tf.Tensor) -> Masked:
        """Chooses and masks tokens of int32 (B, T); `padding_mask`, bool, is True for a real one.

        An example and its seed, of int64 (B,), determine the result, whatever the batch composition
        and the padding; see `kbert.text.sequences.stateless_random.row_seeds`.
        """
        may_be_chosen = padding_mask & ~tf.gather(self._special, token_ids)
        # float64, otherwise halves would be rounded differently from the original.
        count = tf.reduce_sum(tf.cast(padding_mask, tf.float64), axis=1)
        wanted = tf.cast(tf.round(count * tf.constant(self.share, tf.float64)), tf.int32)
        there = tf.math.count_nonzero(may_be_chosen, axis=1, dtype=tf.int32)
        budget = tf.minimum(tf.maximum(wanted, 1), tf.minimum(there, self.max_predictions))
        width, most = tf.shape(token_ids)[1], self.max_predictions
        if self.whole_words:
            inside = tf.gather(self._continues, token_ids)
            chosen, unit = chosen_words(may_be_chosen, inside, budget, self.ngram, seeds)
            places = tf.where(chosen, tf.range(width), width)
        else:
            keys = tf.where(may_be_chosen, random_uniform(seeds, _CHOICE + tf.range(width)), 2.0)
            _, order = tf.math.top_k(-keys, tf.minimum(width, most))
            is_drawn = tf.range(tf.shape(order)[1]) < budget[:, tf.newaxis]
            places = tf.where(is_drawn, order, width)
        places = tf.sort(places)[:, :most]  # of the chosen tokens, and T for none
        lacking = [[0, 0], [0, most - tf.shape(places)[1]]]
        places = tf.ensure_shape(tf.pad(places, lacking, constant_values=width), (None, most))
        real = places < width
        positions = tf.where(real, places, 0)
        unit = tf.gather(unit, positions, batch_dims=1) if self.whole_words else positions

        targets = tf.gather(token_ids, positions, batch_dims=1)
        fate = random_uniform(seeds, _ACTION + unit)
        drawn = random_index(seeds, _REPLACEMENT + positions, len(self._ordinary))
        other = tf.gather(self._ordinary, drawn)
        shown = tf.where(fate < _CHANGED, other, targets)
        shown = tf.where(fate < _MASKED, self.vocabulary.mask_id, shown)
        rows = tf.broadcast_to(tf.range(tf.shape(positions)[0])[:, tf.newaxis], tf.shape(positions))
        # Padding writes into a column behind the last, which is cut off again.
        cells = tf.stack([rows, places], axis=-1)
        wide = tf.tensor_scatter_nd_update(tf.pad(token_ids, [[0, 0], [0, 1]]), cells, shown)
        token_ids = tf.ensure_shape(wide[:, :width], token_ids.shape)
        return Masked(token_ids, positions, tf.where(real, targets, -1))


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


def chosen_words(
    may_be_chosen: tf.Tensor,
    continues: tf.Tensor,
    budget: tf.Tensor,
    ngram: int,
    seeds: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Chooses runs of whole words, of at most `budget` tokens, int32 (B,), together.

    Which tokens may be chosen and which continue the word of the previous one are bool (B, T). A
    word begins at a token that may be chosen and does not continue a word, or follows one that
    may not be chosen. Runs never cross a token that may not be chosen, and have at most `ngram`
    words, K; a run of k words has the weight 1/k.

    Returns which tokens are chosen, bool (B, T), and the first token of the run of each, int32.
    """
    runs = _shuffled_runs(may_be_chosen, continues, ngram, seeds)
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
        bounds = tf.cumsum(tf.where(may_be_drawn, weights, 0.0), axis=1)
        drawn = random_uniform(seeds, _SIZES + state.round[tf.newaxis]) * bounds[:, -1:]
        passed = tf.math.count_nonzero(drawn >= bounds, axis=1, dtype=tf.int32)
        size = tf.minimum(passed, ngram - 1)  # (B,)
        place = tf.stack([size, tf.gather(state.tried, size, batch_dims=1)], axis=1)
        place = tf.where(going_on[:, tf.newaxis], place, 0)
        begin, end = (tf.gather_nd(side, place, batch_dims=1) for side in (runs.begin, runs.end))
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
    may_be_chosen: tf.Tensor, continues: tf.Tensor, ngram: int, seeds: tf.Tensor
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
        keys = random_uniform(seeds, _CHOICE + columns * ngram + words - 1)
        order = tf.argsort(tf.where(is_run, keys, 2.0))
        end = _ahead(begin, words, width)
        shuffled = (tf.gather(side, order, batch_dims=1) for side in (begin, end))
        found.append((*shuffled, tf.math.count_nonzero(is_run, axis=1, dtype=tf.int32)))
    return _Runs(*(tf.stack(column, axis=1) for column in zip(*found)))


def _ahead(values: tf.Tensor, by: int, filler: tf.Tensor | bool) -> tf.Tensor:
    """Shifts values left by `by` columns, (B, T)."""
    rows, width = tf.unstack(tf.shape(values))
    missing = tf.fill((rows, by), filler)
    return tf.concat([values, missing], axis=1)[:, by : by + width]


def filled(text: tf.Tensor, words: tf.RaggedTensor, special_tokens: SpecialTokens) -> tf.Tensor:
    """Replaces each "[MASK]" of texts (B,) by the next of their words (B, (n)), as graph code.

    A continuation piece, "##ing", is joined to what precedes it, also across white space. Words of
    a byte-level vocabulary bring their own space, so that all are.
    """
    pieces = tf.strings.split(tf.reshape(text, (-1,)), special_tokens.mask)  # (B, (n + 1))
    row = pieces.value_rowids()
    number = tf.range(tf.size(row, tf.int64)) - tf.gather(pieces.row_starts(), row)
    # One more word, an empty one, after the last piece of each text.
    padded = tf.concat([words, tf.fill((words.nrows(), 1), "")], axis=1)
    last = tf.gather(padded.row_lengths(), row) - 1
    word = tf.gather(padded.values, tf.gather(padded.row_starts(), row) + tf.minimum(number, last))
    before = tf.strings.regex_replace(pieces.values, r"\s+$", "")
    if special_tokens.byte_level:
        begins = tf.equal(number, 0) & tf.equal(before, "")
        word = tf.where(begins, tf.strings.regex_replace(word, r"^\s+", ""), word)
        # What follows the last mask stays as it is.
        last = tf.equal(number, tf.gather(pieces.row_lengths(), row) - 1)
        parts = tf.where(last, pieces.values, tf.strings.join([before, word]))
        return tf.strings.reduce_join(pieces.with_values(parts), axis=-1)
    is_rest = tf.strings.regex_full_match(word, f"{CONTINUES}.+")
    rest = tf.strings.regex_replace(word, f"^{CONTINUES}", "")
    whole, rest = tf.strings.join([pieces.values, word]), tf.strings.join([before, rest])
    return tf.strings.reduce_join(pieces.with_values(tf.where(is_rest, rest, whole)), axis=-1)

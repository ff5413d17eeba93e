"""Masking for masked language modeling: tokens chosen and masked by seed, and filled, as graphs.

Source: Devlin et al. 2019, "BERT", section 3.1 (task 1) and appendix A.1; google-research/bert
`create_pretraining_data.py`, `create_masked_lm_predictions`. Whole words: the note of May 2019 in
the README there. N-grams: Joshi et al. 2020, "SpanBERT", and Sun et al. 2019, "ERNIE"; chosen and
replaced as in Model Garden's `official/nlp/data/create_pretraining_data.py`.

Shapes: B rows, T tokens, P predictions, V words of the vocabulary.
"""

import re
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from kbert.text.masking.stateless_random import random_index, random_uniform
from kbert.text.masking.word_masking import chosen_words
from kbert.text.wordpiece.vocabulary import MASK, SPECIAL_TOKENS, Vocabulary

_CONTINUES = "##"  # how a piece inside a word begins
_UNUSED = re.compile(r"\[unused\d+\]")
# Of the chosen tokens: shares that become [MASK], and [MASK] or a random token.
_MASKED, _CHANGED = 0.8, 0.9
# Offsets of the numbers of each purpose in an example's random sequence.
_ACTION, _REPLACEMENT, _CHOICE = 0, 1 << 24, 2 << 24


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

    Args:
        vocabulary: The tokens.
        max_predictions: P, the most tokens that are chosen of an example.
        share: The fraction of the tokens of an example that is chosen.
        whole_words: Whether words are chosen instead of their pieces.
        ngram: The most words that are chosen in a run; needs `whole_words`.

    Raises:
        ValueError: The vocabulary has no [MASK] or no ordinary token, or a number is out of range.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        max_predictions: int,
        share: float = 0.15,
        whole_words: bool = False,
        ngram: int = 1,
    ) -> None:
        _check(vocabulary, max_predictions, share, whole_words, ngram)
        self.vocabulary = vocabulary
        self.max_predictions = max_predictions
        self.share = share
        self.whole_words = whole_words
        self.ngram = ngram
        tokens = vocabulary.tokens
        special = np.array([token in SPECIAL_TOKENS for token in tokens])
        unused = np.array([_UNUSED.fullmatch(token) is not None for token in tokens])
        self._ordinary = np.flatnonzero(~special & ~unused).astype("int32")
        if not len(self._ordinary):
            raise ValueError(
                "`vocabulary` must have tokens that are not special. "
                f"Received: {len(tokens)} special or unused tokens"
            )
        self._special = special
        self._continues = np.array([token.startswith(_CONTINUES) for token in tokens])

    def mask(self, token_ids: tf.Tensor, padding_mask: tf.Tensor, seeds: tf.Tensor) -> Masked:
        """Chooses and masks tokens.

        Args:
            token_ids: int32 (B, T).
            padding_mask: bool (B, T), True for a real token.
            seeds: int64 (B,). An example and its seed determine the result, whatever the batch
                composition and the padding; see
                `kbert.text.masking.stateless_random.row_seeds`.
        """
        may_be_chosen = padding_mask & ~tf.gather(self._special, token_ids)
        budget = self._budget(padding_mask, may_be_chosen)
        if self.whole_words:
            inside = tf.gather(self._continues, token_ids)
            chosen, unit = chosen_words(may_be_chosen, inside, budget, self.ngram, seeds, _CHOICE)
            positions, real = _first_places(chosen, self.max_predictions)
            unit = tf.gather(unit, positions, batch_dims=1)
        else:
            positions, real = self._single_tokens(may_be_chosen, budget, seeds)
            unit = positions
        targets = tf.gather(token_ids, positions, batch_dims=1)
        fate = random_uniform(seeds, _ACTION + unit)
        drawn = random_index(seeds, _REPLACEMENT + positions, len(self._ordinary))
        other = tf.gather(self._ordinary, drawn)
        shown = tf.where(fate < _CHANGED, other, targets)
        shown = tf.where(fate < _MASKED, self.vocabulary.mask_id, shown)
        token_ids = _put(token_ids, positions, tf.where(real, shown, targets))
        return Masked(token_ids, tf.where(real, positions, 0), tf.where(real, targets, -1))

    def _budget(self, padding_mask: tf.Tensor, may_be_chosen: tf.Tensor) -> tf.Tensor:
        """Returns the number of tokens to choose of each example, int32 (B,)."""
        real = tf.reduce_sum(tf.cast(padding_mask, tf.float64), axis=1)
        # float64, otherwise halves would be rounded differently from the original.
        wanted = tf.cast(tf.round(real * tf.constant(self.share, tf.float64)), tf.int32)
        there = tf.reduce_sum(tf.cast(may_be_chosen, tf.int32), axis=1)
        return tf.minimum(tf.maximum(wanted, 1), tf.minimum(there, self.max_predictions))

    def _single_tokens(
        self, may_be_chosen: tf.Tensor, budget: tf.Tensor, seeds: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns positions (B, P) of `budget` random tokens, and which of these are real."""
        width = tf.shape(may_be_chosen)[1]
        keys = random_uniform(seeds, _CHOICE + tf.range(width))
        keys = tf.where(may_be_chosen, keys, 2.0)
        most = tf.minimum(width, self.max_predictions)
        _, places = tf.math.top_k(-keys, most, sorted=True)
        real = tf.range(most) < budget[:, tf.newaxis]
        return _padded(tf.sort(tf.where(real, places, width)), width, self.max_predictions)


def _first_places(chosen: tf.Tensor, count: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the first `count` columns that are chosen, (B, P), and which of these are real."""
    width = tf.shape(chosen)[1]
    places = tf.sort(tf.where(chosen, tf.range(width), width))
    return _padded(places[:, :count], width, count)


def _padded(places: tf.Tensor, width: tf.Tensor, count: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Pads sorted positions, `width` for none, to (B, count), 0 for none; and which are real."""
    missing = count - tf.shape(places)[1]
    places = tf.pad(places, [[0, 0], [0, missing]], constant_values=width)
    places = tf.ensure_shape(places, (None, count))
    real = places < width
    return tf.where(real, places, 0), real


def _put(token_ids: tf.Tensor, positions: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """Writes `values` (B, P) to `token_ids` at `positions`; padding writes the present value."""
    rows = tf.broadcast_to(tf.range(tf.shape(positions)[0])[:, tf.newaxis], tf.shape(positions))
    cells = tf.stack([rows, positions], axis=-1)
    return tf.tensor_scatter_nd_update(token_ids, cells, values)


def _check(
    vocabulary: Vocabulary, max_predictions: int, share: float, whole_words: bool, ngram: int
) -> None:
    if "[MASK]" not in vocabulary:
        raise ValueError(f"`vocabulary` must have the token [MASK]. Received: {vocabulary!r}")
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


def filled(text: tf.Tensor, words: tf.RaggedTensor) -> tf.Tensor:
    """Replaces each "[MASK]" by a word, as graph code.

    A continuation piece, "##ing", is joined to what precedes it, also across white space.

    Args:
        text: string (B,).
        words: string (B, (n)), one for each "[MASK]" of a text in order.
    """
    pieces = tf.strings.split(tf.reshape(text, (-1,)), MASK)  # (B, (n + 1))
    row = pieces.value_rowids()
    number = tf.range(tf.size(row, tf.int64)) - tf.gather(pieces.row_starts(), row)
    # One more word, an empty one, after the last piece of each text.
    padded = tf.concat([words, tf.fill((words.nrows(), 1), "")], axis=1)
    place = tf.gather(padded.row_starts(), row) + tf.minimum(
        number, tf.gather(padded.row_lengths(), row) - 1
    )
    word = tf.gather(padded.values, place)
    is_rest = tf.strings.regex_full_match(word, f"{_CONTINUES}.+")
    before = tf.strings.regex_replace(pieces.values, r"\s+$", "")
    rest = tf.strings.regex_replace(word, f"^{_CONTINUES}", "")
    joined = tf.where(
        is_rest, tf.strings.join([before, rest]), tf.strings.join([pieces.values, word])
    )
    return tf.strings.reduce_join(pieces.with_values(joined), axis=-1)

"""Entities from tags of words: valid tag sequences, and the words of each entity.

Shapes: B rows, U words of the longest row, C tags.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from kbert.text.sequences.viterbi import TagRules, viterbi


class Entities(NamedTuple):
    """Entities of rows. All are ragged (B, (entities)).

    Attributes:
        kind: int32, the index of the type in `entity_types`.
        first: int32, the first word.
        last: int32, the last word.
        score: float32, the mean probability of its words' tags.
    """

    kind: tf.RaggedTensor
    first: tf.RaggedTensor
    last: tf.RaggedTensor
    score: tf.RaggedTensor


def split_tag(tag: str) -> tuple[str, str]:
    """Splits a tag into prefix and type: "B-LOC" to "B", "LOC"; "B" to "B", ""; "O" to "O", ""."""
    prefix, _, kind = tag.partition("-")
    return prefix, kind


def entity_types(tags: Sequence[str]) -> list[str]:
    """Returns the types of tags, in order of appearance."""
    return list(dict.fromkeys(split_tag(tag)[1] for tag in tags if tag != "O"))


def tag_rules(tags: Sequence[str]) -> TagRules:
    """Returns the rules of BIO (IOB2) tags, or of IOBES if there are E- or S- tags.

    Source: Ramshaw and Marcus 1995; Ratinov and Roth 2009 (as BILOU).

    Args:
        tags: C tags: "O", and "B", "I", "E", "S" with or without "-TYPE".
    """
    split = [split_tag(tag) for tag in tags]
    closing = {prefix for prefix, _ in split} & {"E", "S"}

    def follows(previous: tuple[str, str], following: tuple[str, str]) -> bool:
        is_open = previous[0] == "B" or previous[0] == "I"
        goes_on = following[0] in ("I", "E")
        if goes_on:
            return is_open and previous[1] == following[1]
        return not (closing and is_open)

    nothing = ("O", "")
    return TagRules(
        np.array([follows(nothing, tag) for tag in split]),
        np.array([[follows(before, tag) for tag in split] for before in split]),
        np.array([follows(tag, nothing) for tag in split]),
    )


def unreachable_tags(tags: Sequence[str]) -> list[str]:
    """Returns the tags that no valid sequence contains, such as "I-PER" without "B-PER".

    Args:
        tags: C tags: "O", and "B", "I", "E", "S" with or without "-TYPE".
    """
    rules = tag_rules(tags)
    from_begin, to_end = rules.begin, rules.end
    for _ in tags:
        from_begin = from_begin | (from_begin[:, np.newaxis] & rules.follow).any(axis=0)
        to_end = to_end | (rules.follow & to_end).any(axis=1)
    return [tag for tag, good in zip(tags, from_begin & to_end) if not good]


def best_path(scores: tf.Tensor, lengths: tf.Tensor, rules: TagRules) -> tf.Tensor:
    """Returns the likeliest allowed tags of each row, as graph code.

    Rows whose likeliest tags are allowed as they are need no search.

    Args:
        scores: float32 (B, U, C), log-probabilities.
        lengths: int32 (B,), words of each row.
        rules: which tags may follow each other.

    Returns:
        int32 (B, U); 0 after the end of a row.
    """
    real = tf.sequence_mask(lengths, tf.shape(scores)[1])
    likeliest = tf.argmax(scores, axis=-1, output_type=tf.int32)

    allowed = _allowed(likeliest, real, lengths, rules)

    def search() -> tf.Tensor:
        rows = tf.where(~allowed)
        found = viterbi(tf.gather_nd(scores, rows), tf.gather_nd(lengths, rows), rules)
        return tf.tensor_scatter_nd_update(likeliest, rows, found)

    path = tf.cond(tf.reduce_all(allowed), lambda: likeliest, search)
    return tf.where(real, path, 0)


def _allowed(
    path: tf.Tensor, real: tf.Tensor, lengths: tf.Tensor, rules: TagRules
) -> tf.Tensor:
    """Returns which rows of a path break no rule, bool (B,)."""
    follow, begin, end = tf.constant(rules.follow), tf.constant(rules.begin), tf.constant(rules.end)
    flat = path[:, :-1] * len(rules.begin) + path[:, 1:]
    steps = tf.gather(tf.reshape(follow, [-1]), flat) | ~real[:, 1:]
    padded = tf.pad(path, [[0, 0], [0, 1]])  # so that there is a first and a last
    last = tf.gather(padded, tf.maximum(lengths - 1, 0), batch_dims=1)
    ends = tf.gather(begin, padded[:, 0]) & tf.gather(end, last)
    return tf.reduce_all(steps, axis=1) & (ends | (lengths == 0))


def find_entities(
    path: tf.Tensor, probabilities: tf.Tensor, lengths: tf.Tensor, tags: Sequence[str]
) -> Entities:
    """Extracts entities from allowed tags, as graph code.

    Args:
        path: int32 (B, U), from `best_path`.
        probabilities: float32 (B, U, C).
        lengths: int32 (B,), words of each row.
        tags: the C tags.
    """
    split = [split_tag(tag) for tag in tags]
    types = entity_types(tags)
    real = tf.sequence_mask(lengths, tf.shape(path)[1])
    inside = tf.gather(tf.constant([p != "O" for p, _ in split]), path) & real
    goes_on = tf.gather(tf.constant([p in ("I", "E") for p, _ in split]), path) & real
    begins = inside & ~goes_on
    ends = inside & ~tf.pad(goes_on[:, 1:], [[0, 0], [0, 1]])
    place = tf.broadcast_to(tf.range(tf.shape(path)[1]), tf.shape(path))
    first = tf.ragged.boolean_mask(place, begins)
    last = tf.ragged.boolean_mask(place, ends)
    kinds = tf.constant([types.index(kind) if p != "O" else 0 for p, kind in split], tf.int32)
    kind = tf.ragged.boolean_mask(tf.gather(kinds, path), begins)
    chosen = tf.where(inside, tf.gather(probabilities, path, batch_dims=2), 0.0)
    # In float64: a difference of sums over a whole text.
    sums = tf.pad(tf.cumsum(tf.cast(chosen, tf.float64), axis=1), [[0, 0], [1, 0]])
    row = first.value_rowids()
    above = tf.gather_nd(sums, tf.stack([row, tf.cast(last.values, tf.int64) + 1], axis=1))
    below = tf.gather_nd(sums, tf.stack([row, tf.cast(first.values, tf.int64)], axis=1))
    words = tf.cast(last.values - first.values + 1, tf.float64)
    score = first.with_values(tf.cast((above - below) / words, tf.float32))
    return Entities(kind, first, last, score)

"""Entities from tags of words: valid tag sequences, the likeliest one, the words of each entity.

A Viterbi search word by word takes a graph step per word: minutes for a text of a megabyte. Here
texts are cut into blocks, and a step processes one word of every block at once, so that the number
of steps grows as the square root of the text's length.

Shapes: B rows, U words of the longest row, C tags, K blocks of L words.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

# The score of a forbidden step: far below every sum of log-probabilities of a text.
_FORBIDDEN = -1e9
# The same for every text, so that the result of a row does not depend on batch composition.
BLOCK = 1024


class TagRules(NamedTuple):
    """Which tags may begin a row, follow each other, and end a row."""

    begin: np.ndarray  # bool (C,)
    follow: np.ndarray  # bool (C, C), [previous, next]
    end: np.ndarray  # bool (C,)


class Entities(NamedTuple):
    """Entities of rows. All are ragged (B, (entities))."""

    kind: tf.RaggedTensor  # int32, the index of the type in `entity_types`
    first: tf.RaggedTensor  # int32, the first word
    last: tf.RaggedTensor  # int32, the last word
    score: tf.RaggedTensor  # float32, the mean probability of its words' tags


def split_tag(tag: str) -> tuple[str, str]:
    """Splits a tag into prefix and type: "B-LOC" to "B", "LOC"; "B" to "B", ""; "O" to "O", ""."""
    prefix, _, kind = tag.partition("-")
    return prefix, kind


def entity_types(tags: Sequence[str]) -> list[str]:
    """Returns the types of tags, in order of appearance."""
    return list(dict.fromkeys(split_tag(tag)[1] for tag in tags if tag != "O"))


def tag_rules(tags: Sequence[str], strict: bool = True) -> TagRules:
    """Returns the rules of BIO (IOB2) tags, or of IOBES if there are E- or S- tags.

    Tags are "O", and "B", "I", "E", "S" with or without "-TYPE". Where BIO is not `strict`, an I-
    may stand anywhere, as in IOB1.

    Source: Ramshaw and Marcus 1995; Ratinov and Roth 2009 (as BILOU).
    """
    split = [split_tag(tag) for tag in tags]
    closing = {prefix for prefix, _ in split} & {"E", "S"}

    def follows(previous: tuple[str, str], following: tuple[str, str]) -> bool:
        is_open = previous[0] in ("B", "I")
        if not strict and not closing:
            return True
        if following[0] in ("I", "E"):
            return is_open and previous[1] == following[1]
        return not (closing and is_open)

    nothing = ("O", "")
    return TagRules(
        np.array([follows(nothing, tag) for tag in split]),
        np.array([[follows(before, tag) for tag in split] for before in split]),
        np.array([follows(tag, nothing) for tag in split]),
    )


def unreachable_tags(tags: Sequence[str], strict: bool = True) -> list[str]:
    """Returns the tags that no valid sequence contains, such as "I-PER" without "B-PER"."""
    rules = tag_rules(tags, strict)
    from_begin, to_end = rules.begin, rules.end
    for _ in tags:
        from_begin = from_begin | (from_begin[:, np.newaxis] & rules.follow).any(axis=0)
        to_end = to_end | (rules.follow & to_end).any(axis=1)
    return [tag for tag, good in zip(tags, from_begin & to_end) if not good]


def best_path(scores: tf.Tensor, lengths: tf.Tensor, rules: TagRules) -> tf.Tensor:
    """Returns the likeliest allowed tags of each row, as graph code.

    Scores are log-probabilities, float32 (B, U, C), and lengths the words of each row, int32 (B,).
    Rows whose likeliest tags are allowed as they are need no search. The tags are int32 (B, U); 0
    after the end of a row.
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


def _allowed(path: tf.Tensor, real: tf.Tensor, lengths: tf.Tensor, rules: TagRules) -> tf.Tensor:
    """Returns which rows of a path break no rule, bool (B,)."""
    steps = tf.gather(rules.follow.reshape(-1), path[:, :-1] * len(rules.begin) + path[:, 1:])
    padded = tf.pad(path, [[0, 0], [0, 1]])  # so that there is a first and a last
    last = tf.gather(padded, tf.maximum(lengths - 1, 0), batch_dims=1)
    ends = tf.gather(rules.begin, padded[:, 0]) & tf.gather(rules.end, last)
    return tf.reduce_all(steps | ~real[:, 1:], axis=1) & (ends | (lengths == 0))


def find_entities(
    path: tf.Tensor, probabilities: tf.Tensor, lengths: tf.Tensor, tags: Sequence[str]
) -> Entities:
    """Extracts entities from allowed tags, as graph code.

    `path`, int32 (B, U), is from `best_path`; probabilities are float32 (B, U, C), and lengths the
    words of each row, int32 (B,). An I- behind another type or behind O begins an entity.
    """
    split = [split_tag(tag) for tag in tags]
    types = entity_types(tags)
    real = tf.sequence_mask(lengths, tf.shape(path)[1])
    inside = tf.gather(tf.constant([p != "O" for p, _ in split]), path) & real
    kinds = tf.constant([types.index(kind) if p != "O" else -1 for p, kind in split], tf.int32)
    of_kind = tf.gather(kinds, path)
    before = tf.pad(of_kind[:, :-1], [[0, 0], [1, 0]], constant_values=-1)
    continues = tf.gather(tf.constant([p in ("I", "E") for p, _ in split]), path) & real
    continues &= tf.equal(before, of_kind)
    begins = inside & ~continues
    ends = inside & ~tf.pad(continues[:, 1:], [[0, 0], [0, 1]])
    from_cells, to_cells = (tf.where(side) for side in (begins, ends))  # (entities, 2)
    chosen = tf.where(inside, tf.gather(probabilities, path, batch_dims=2), 0.0)
    # In float64: a difference of sums over a whole text.
    sums = tf.pad(tf.cumsum(tf.cast(chosen, tf.float64), axis=1), [[0, 0], [1, 0]])
    first, last = (tf.cast(cells[:, 1], tf.int32) for cells in (from_cells, to_cells))
    above, below = tf.gather_nd(sums, to_cells + [0, 1]), tf.gather_nd(sums, from_cells)
    score = tf.cast((above - below) / tf.cast(last - first + 1, tf.float64), tf.float32)
    kind = tf.gather(kinds, tf.gather_nd(path, from_cells))
    counts = tf.reduce_sum(tf.cast(begins, tf.int64), axis=1)
    rows = tf.RaggedTensor.from_row_lengths(first, counts, validate=False)
    return Entities(*map(rows.with_values, (kind, first, last, score)))


class _Blocks(NamedTuple):
    """Scores float32 (L, B, K, C), whether a word is real bool (L, B, K, 1), and penalties."""

    scores: tf.Tensor
    real: tf.Tensor
    begin: tf.Tensor
    follow: tf.Tensor
    end: tf.Tensor


def viterbi(
    scores: tf.Tensor, lengths: tf.Tensor, rules: TagRules, block: int = BLOCK
) -> tf.Tensor:
    """Searches for what `best_path` returns, with `block` words per block; U is at least 1.

    After the end of a row its last tag is repeated.

    Sources: Viterbi 1967. That a block is a matrix of best scores, from each tag before it to each
    of its last word, and that such matrices combine: Särkkä and García-Fernández 2021.
    """
    words = tf.shape(scores)[1]
    length = tf.clip_by_value(words, 1, block)
    blocks = _in_blocks(scores, lengths, rules, length)
    nothing = tf.zeros_like(blocks.scores[0])
    before = tf.cond(words > block, lambda: _entering(blocks), lambda: nothing)
    score, pointers = _forward(blocks, before)
    # From the block with the row's last word, so that longer rows do not change it.
    score = tf.gather(score, tf.maximum(lengths - 1, 0) // length, batch_dims=1)
    last = tf.argmax(score + blocks.end, axis=-1, output_type=tf.int32)
    ways = _backward(pointers)
    befores = tf.scan(
        lambda tag, way: tf.gather(way, tag, batch_dims=1),
        tf.transpose(ways[0], (1, 0, 2)),  # (K, B, C)
        initializer=last,
        reverse=True,
    )
    # The last tag of each block is the tag before the block after it.
    ends = tf.concat([befores[1:], last[tf.newaxis]], axis=0)
    by_block = tf.transpose(ways[1:], (1, 2, 3, 0))  # (B, K, C, L)
    path = tf.gather(by_block, tf.transpose(ends), batch_dims=2)
    return tf.reshape(path, (tf.shape(scores)[0], -1))[:, :words]


def _in_blocks(
    scores: tf.Tensor, lengths: tf.Tensor, rules: TagRules, length: tf.Tensor
) -> _Blocks:
    def penalty(allowed: np.ndarray) -> tf.Tensor:
        return tf.constant(np.where(allowed, 0.0, _FORBIDDEN), tf.float32)

    rows, words, tags = tf.shape(scores)[0], tf.shape(scores)[1], scores.shape[2]
    count = -(-words // length)
    padded = tf.pad(scores, [[0, 0], [0, count * length - words], [0, 0]])
    cut = tf.transpose(tf.reshape(padded, (rows, count, length, tags)), (2, 0, 1, 3))
    real = tf.reshape(tf.sequence_mask(lengths, count * length), (rows, count, length, 1))
    return _Blocks(cut, tf.transpose(real, (2, 0, 1, 3)), *map(penalty, rules))


def _entering(blocks: _Blocks) -> tf.Tensor:
    """Returns the best scores of each tag of the word before each of K > 1 blocks, (B, K, C)."""
    earlier = blocks._replace(scores=blocks.scores[:, :, :-1], real=blocks.real[:, :, :-1])
    _, rows, count, _ = tf.unstack(tf.shape(earlier.scores))
    tags = blocks.scores.shape[-1]
    identity = tf.where(tf.eye(tags, dtype=tf.bool), 0.0, _FORBIDDEN)
    matrices = tf.broadcast_to(identity, (rows, count, tags, tags))  # [first, last] of the block

    def step(number: tf.Tensor, matrices: tf.Tensor) -> list[tf.Tensor]:
        # (B, K, first, previous, next), maximized over previous.
        best = tf.reduce_max(matrices[..., tf.newaxis] + blocks.follow, axis=3)
        best = _begun(number, best, blocks.begin) + earlier.scores[number][:, :, tf.newaxis]
        best -= tf.reduce_max(best, axis=(2, 3), keepdims=True)
        return [number + 1, tf.where(earlier.real[number][..., tf.newaxis], best, matrices)]

    length = tf.shape(blocks.scores)[0]
    _, matrices = tf.while_loop(lambda number, _: number < length, step, [0, matrices])

    def combined(before: tf.Tensor, matrix: tf.Tensor) -> tf.Tensor:
        best = tf.reduce_max(before[:, :, tf.newaxis] + matrix, axis=1)
        return best - tf.reduce_max(best, axis=1, keepdims=True)

    first = tf.zeros((rows, tags))
    after = tf.scan(combined, tf.transpose(matrices, (1, 0, 2, 3)), initializer=first)
    return tf.transpose(tf.concat([first[tf.newaxis], after], axis=0), (1, 0, 2))


def _begun(number: tf.Tensor, best: tf.Tensor, begin: tf.Tensor) -> tf.Tensor:
    """Returns `best` (B, K, ...C), at the first word of a row replaced by the start penalties."""
    rest = tf.concat([tf.broadcast_to(begin, tf.shape(best[:, :1])), best[:, 1:]], axis=1)
    return tf.cond(number == 0, lambda: rest, lambda: best)


def _forward(blocks: _Blocks, entering: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the scores of tags of each block's last word, (B, K, C) and backpointers (L, ...)."""
    length, tags = tf.shape(blocks.scores)[0], blocks.scores.shape[-1]
    itself = tf.range(tags)[tf.newaxis, tf.newaxis]
    array = tf.TensorArray(tf.int32, size=length, element_shape=(None, None, tags))

    def step(number: tf.Tensor, score: tf.Tensor, pointers: tf.TensorArray) -> Any:
        candidates = score[..., tf.newaxis] + blocks.follow  # (B, K, previous, next)
        before = tf.argmax(candidates, axis=2, output_type=tf.int32)
        best = _begun(number, tf.reduce_max(candidates, axis=2), blocks.begin)
        new = best + blocks.scores[number]
        # Only differences matter, and large sums would lose them.
        new -= tf.reduce_max(new, axis=-1, keepdims=True)
        real = blocks.real[number]
        pointers = pointers.write(number, tf.where(real, before, itself))
        return number + 1, tf.where(real, new, score), pointers

    _, score, pointers = tf.while_loop(
        lambda number, *_: number < length, step, (tf.constant(0), entering, array)
    )
    return score, pointers.stack()


def _backward(pointers: tf.Tensor) -> tf.Tensor:
    """Returns, for each last tag, the tag before the block and of its words, (L + 1, B, K, C)."""
    itself = tf.broadcast_to(tf.range(pointers.shape[-1]), tf.shape(pointers)[1:])
    itself = tf.ensure_shape(itself, pointers.shape[1:])
    ways = tf.scan(
        lambda tag, before: tf.gather(before, tag, batch_dims=2),
        pointers,
        initializer=itself,
        reverse=True,
    )
    return tf.concat([ways, itself[tf.newaxis]], axis=0)

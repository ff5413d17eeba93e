"""Viterbi search over texts of any length, in a number of steps that grows as the square root.

A search word by word takes a graph step per word: minutes for a text of a megabyte. Here texts are
cut into blocks, and a step processes one word of every block at once.

Shapes: B rows, U words of the longest row, C tags, K blocks of L words.
"""

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

# The score of a forbidden step: far below every sum of log-probabilities of a text.
_FORBIDDEN = -1e9
# The same for every text, so that the result of a row does not depend on batch composition.
BLOCK = 1024


class TagRules(NamedTuple):
    """Which tags may begin a row, follow each other, and end a row.

    Attributes:
        begin: bool (C,).
        follow: bool (C, C), [previous, next].
        end: bool (C,).
    """

    begin: np.ndarray
    follow: np.ndarray
    end: np.ndarray


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
    """Returns the likeliest allowed tags of each row, as graph code.

    Sources: Viterbi 1967. That a block is a matrix of best scores, from each tag before it to each
    of its last word, and that such matrices combine: Särkkä and García-Fernández 2021.

    Args:
        scores: float32 (B, U, C), log-probabilities; U is at least 1.
        lengths: int32 (B,), words of each row.
        rules: which tags may follow each other.
        block: words per block.

    Returns:
        int32 (B, U); after the end of a row, its last tag.
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

    def earlier(tag: tf.Tensor, way: tf.Tensor) -> tf.Tensor:
        return tf.gather(way, tag, batch_dims=1)

    # The last tag of each block is the tag before the block after it.
    backwards = tf.reverse(tf.transpose(ways[0], (1, 0, 2)), [0])  # (K, B, C)
    ends = tf.scan(earlier, backwards, initializer=last)
    ends = tf.reverse(tf.concat([last[tf.newaxis], ends[:-1]], axis=0), [0])
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
    """Returns the best scores of each tag of the word before each block, (B, K, C), first 0.

    There are at least two blocks.
    """
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
    """Returns the scores of tags of each block's last word, (B, K, C), and backpointers, (L, ...).

    After the end of a row, scores and tags stay the same.
    """
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
    length = tf.shape(pointers)[0]
    array = tf.TensorArray(tf.int32, size=length + 1, element_shape=pointers.shape[1:])
    itself = tf.broadcast_to(tf.range(pointers.shape[-1]), tf.shape(pointers)[1:])

    def step(number: tf.Tensor, tag: tf.Tensor, ways: tf.TensorArray) -> Any:
        before = tf.gather(pointers[number - 1], tag, batch_dims=2)
        return number - 1, before, ways.write(number - 1, before)

    _, _, ways = tf.while_loop(
        lambda number, *_: number > 0, step, (length, itself, array.write(length, itself))
    )
    return ways.stack()

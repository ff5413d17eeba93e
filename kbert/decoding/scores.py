"""Scores of hypotheses: the likeliest continuations, and length penalties.

Continuations are found without sorting the whole vocabulary.

Shapes: b rows, k hypotheses a row, V tokens, C pieces that a vocabulary is cut into, P = V / C
tokens a piece.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from keras import ops

from kbert.decoding.active_rows import of_parents

_IMPOSSIBLE = -float("inf")


# P where V is known only when a graph runs, and is a multiple of it, as `shortlist_multiple` says.
_SHORTLIST_PIECE = 8


class Pieces(NamedTuple):
    """Logits with the largest one of each piece of the vocabulary."""

    logits: Any  # float32 (b, k, V)
    maxima: Any  # float32 (b, k, C); C = V where the vocabulary is too small to be cut
    size: int  # P


def shortlist_multiple(count: int) -> int:
    """Returns what a number of tokens that varies must be a multiple of, for `count` likeliest."""
    return _SHORTLIST_PIECE * count


def in_pieces(logits: Any, count: int) -> Pieces:
    """Finds the largest of the logits (b, k, V) of each piece, to search the `count` likeliest."""
    logits = ops.cast(logits, "float32")
    known = logits.shape[-1]
    size = _SHORTLIST_PIECE if known is None else _piece_size(known, count)
    if size == 1:
        return Pieces(logits, logits, 1)
    cut = ops.reshape(logits, (-1, logits.shape[1], ops.shape(logits)[2] // size, size))
    # (`initial` allows a batch without rows.)
    return Pieces(logits, ops.max(cut, axis=-1, initial=_IMPOSSIBLE), size)


def log_sum_exp(pieces: Pieces) -> Any:
    """Computes log sum exp of each hypothesis' logits, (b, k), by one softmax; 0 if all are -inf.

    The softmax p of the largest logit z is exp(z - log sum exp), at least 1 / V: from it the sum
    follows without another exponential of all, and without loss of precision.
    """
    largest, piece = ops.top_k(pieces.maxima, 1)  # (b, k, 1)
    probabilities = ops.softmax(pieces.logits, axis=-1)
    hypotheses, number = ops.shape(pieces.maxima)[1:]
    cut = ops.reshape(probabilities, (-1, number, pieces.size))
    searched = of_parents(cut, ops.reshape(piece, (-1, 1)))  # (b * k, 1, P)
    of_largest = ops.reshape(ops.max(searched, axis=(-2, -1), initial=0.0), (-1, hypotheses))
    found = largest[..., 0] - ops.log(of_largest)
    return ops.where(largest[..., 0] > _IMPOSSIBLE, found, 0.0)


def best_continuations(
    pieces: Pieces, offsets: Any, count: int, candidates: Any = None
) -> tuple[Any, Any, Any]:
    """Finds the likeliest continuations of all hypotheses of a row together.

    The `count` largest entries lie in the `count` pieces with the largest maxima: only those pieces
    are searched. Logits plus `offsets`, float32 (b, k), are log-probabilities of whole hypotheses,
    and `candidates` int32 (V,) the tokens that they are of, where these are not 0 to V - 1.

    Returns:
        Log-probabilities float32, hypotheses and tokens int32, each (b, count), the best first;
        padded with -inf where there are fewer. Equal ones are in any order.
    """
    logits, maxima, size = pieces
    hypotheses, number = ops.shape(maxima)[1:]
    known = maxima.shape[2]
    chosen_count = count if known is None else min(count, hypotheses * known)
    every = ops.reshape(maxima + offsets[:, :, None], (-1, hypotheses * number))
    _, chosen = ops.top_k(every, chosen_count)
    chosen = ops.cast(chosen, "int32")  # (b, m): hypothesis * C + piece
    searched = of_parents(ops.reshape(logits, (-1, hypotheses * number, size)), chosen)
    added = of_parents(offsets[:, :, None], chosen // number)  # (b, m, 1)
    total = ops.reshape(searched + added, (-1, chosen_count * size))
    lacking = count - chosen_count * size
    if lacking > 0:
        total = ops.pad(total, ((0, 0), (0, lacking)), constant_values=_IMPOSSIBLE)
    best, index = ops.top_k(total, count)
    index = ops.minimum(ops.cast(index, "int32"), chosen_count * size - 1)
    place = of_parents(chosen[:, :, None], index // size)[:, :, 0]
    token = (place % number) * size + index % size
    return best, place // number, token if candidates is None else ops.take(candidates, token)


def _piece_size(vocabulary_size: int, count: int) -> int:
    """Returns P, the divisor of V with the least work, or 1 where cutting does not pay."""
    # What is sorted: the maxima, V / P of each hypothesis, and then `count` pieces.
    best = math.sqrt(vocabulary_size / count)
    sizes = [s for s in range(2, vocabulary_size // count + 1) if vocabulary_size % s == 0]
    size = min(sizes, key=lambda s: abs(math.log(s / best)), default=1)
    work = vocabulary_size // size + count * size
    return size if vocabulary_size >= 64 and work < vocabulary_size / 2 else 1


def check_beam(beam_size: int, nbest: int) -> None:
    """Raises a ValueError unless that many hypotheses give that many sequences."""
    if beam_size < 1:
        raise ValueError(f"`beam_size` must be at least 1. Received: beam_size={beam_size}")
    if not 1 <= nbest <= beam_size:
        raise ValueError(f"`nbest` must be in [1, beam_size={beam_size}]. Received: nbest={nbest}")


# Penalties of n tokens, the end token included; an exponent of 0 is none.
LENGTH_PENALTIES: dict[str, Callable[[Any, float], Any]] = {
    # Wu et al. 2016, equation 14; 0.6 to 1 are usual.
    "gnmt": lambda n, alpha: ops.power((n + 5.0) / 6.0, alpha),
    # fairseq's and CTranslate2's; 1 is the mean log-probability of a token.
    "power": lambda n, alpha: ops.power(n, alpha),
}


def length_penalty(name: str, alpha: float) -> Callable[[Any], Any]:
    """Returns a length penalty with its exponent: from lengths of any shape to float32."""
    if name not in LENGTH_PENALTIES:
        known = sorted(LENGTH_PENALTIES)
        raise ValueError(f"`length_penalty` must be one of {known}. Received: {name!r}")
    if not isinstance(alpha, float | int) or not math.isfinite(alpha):
        raise ValueError(f"`alpha` must be a finite number. Received: alpha={alpha!r}")
    return lambda length: LENGTH_PENALTIES[name](ops.cast(length, "float32"), alpha)

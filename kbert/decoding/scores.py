"""Scores of hypotheses: the likeliest continuations, and length penalties.

Continuations are found without sorting the whole vocabulary.

Shapes: b rows, k hypotheses a row, V tokens, C pieces that a vocabulary is cut into, P = V / C
tokens a piece.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from keras import ops

from kbert.decoding.active_rows import of_parents

_IMPOSSIBLE = -float("inf")


class Pieces(NamedTuple):
    """Logits with the largest one of each piece of the vocabulary."""

    logits: Any  # float32 (b, k, V)
    maxima: Any  # float32 (b, k, C); C = V where the vocabulary is too small to be cut


def in_pieces(logits: Any, count: int) -> Pieces:
    """Finds the largest logit of each piece in one pass, for a search of the `count` likeliest.

    Args:
        logits: float (b, k, V).
        count: how many of the likeliest will be searched for.
    """
    logits = ops.cast(logits, "float32")
    size = _piece_size(logits.shape[-1], count)
    if size == 1:
        return Pieces(logits, logits)
    cut = ops.reshape(logits, (-1, logits.shape[1], logits.shape[2] // size, size))
    # (`initial` allows a batch without rows.)
    return Pieces(logits, ops.max(cut, axis=-1, initial=_IMPOSSIBLE))


def log_sum_exp(pieces: Pieces) -> Any:
    """Computes log sum exp of each hypothesis' logits, (b, k), by one softmax; 0 if all are -inf.

    The softmax p of the largest logit z is exp(z - log sum exp), at least 1 / V: from it the sum
    follows without another exponential of all, and without loss of precision.
    """
    largest, piece = ops.top_k(pieces.maxima, 1)  # (b, k, 1)
    probabilities = ops.softmax(pieces.logits, axis=-1)
    searched = _searched(probabilities, pieces, ops.cast(piece, "int32"))
    of_largest = ops.max(searched, axis=(-2, -1), initial=0.0)
    found = largest[..., 0] - ops.log(of_largest)
    return ops.where(largest[..., 0] > _IMPOSSIBLE, found, 0.0)


def best_continuations(pieces: Pieces, offsets: Any, count: int) -> tuple[Any, Any, Any]:
    """Finds the likeliest continuations of all hypotheses of a row together.

    The `count` largest entries lie in the `count` pieces with the largest maxima: only those pieces
    are searched.

    Args:
        pieces: of the logits.
        offsets: float32 (b, k), added to logits to get log-probabilities of whole hypotheses.
        count: the number of continuations.

    Returns:
        Log-probabilities float32, hypotheses and tokens int32, each (b, count), the best first;
        padded with -inf where there are fewer. Equal ones are in any order.
    """
    logits, maxima = pieces
    hypotheses, number = maxima.shape[1], maxima.shape[2]
    size = logits.shape[2] // number
    chosen_count = min(count, hypotheses * number)
    every = ops.reshape(maxima + offsets[:, :, None], (-1, hypotheses * number))
    _, chosen = ops.top_k(every, chosen_count)
    chosen = ops.cast(chosen, "int32")  # (b, m): hypothesis * C + piece
    rows = ops.shape(logits)[0]
    firsts = ops.arange(rows, dtype="int32")[:, None] * (hypotheses * number)
    flat = ops.reshape(logits, (-1, size))
    searched = ops.take(flat, ops.reshape(firsts + chosen, (-1,)), axis=0)
    searched = ops.reshape(searched, (-1, chosen_count, size))
    added = of_parents(offsets[:, :, None], chosen // number)  # (b, m, 1)
    total = ops.reshape(searched + added, (-1, chosen_count * size))
    lacking = count - chosen_count * size
    if lacking > 0:
        total = ops.pad(total, ((0, 0), (0, lacking)), constant_values=_IMPOSSIBLE)
    best, index = ops.top_k(total, count)
    index = ops.minimum(ops.cast(index, "int32"), chosen_count * size - 1)
    place = of_parents(chosen[:, :, None], index // size)[:, :, 0]
    return best, place // number, (place % number) * size + index % size


def _searched(values: Any, pieces: Pieces, chosen: Any) -> Any:
    """Gathers the pieces (b, k, m, P) of values (b, k, V) with the indices `chosen` (b, k, m)."""
    hypotheses, number = pieces.maxima.shape[1], pieces.maxima.shape[2]
    size, rows = values.shape[2] // number, ops.shape(values)[0]
    firsts = ops.reshape(ops.arange(rows * hypotheses, dtype="int32"), (-1, hypotheses, 1)) * number
    index = ops.reshape(firsts + chosen, (-1,))
    found = ops.take(ops.reshape(values, (-1, size)), index, axis=0)
    return ops.reshape(found, (-1, hypotheses, chosen.shape[2], size))


def _piece_size(vocabulary_size: int, count: int) -> int:
    """Returns P, the divisor of V with the least work, or 1 where cutting does not pay."""
    # What is sorted: the maxima, V / P of each hypothesis, and then `count` pieces.
    best = math.sqrt(vocabulary_size / count)
    sizes = [s for s in range(2, vocabulary_size // count + 1) if vocabulary_size % s == 0]
    size = min(sizes, key=lambda s: abs(math.log(s / best)), default=1)
    work = vocabulary_size // size + count * size
    return size if vocabulary_size >= 64 and work < vocabulary_size / 2 else 1


@dataclass(frozen=True)
class GnmtPenalty:
    """((5 + n) / 6)^alpha for n tokens, the end token included (Wu et al. 2016, equation 14)."""

    alpha: float  # 0 for none; 0.6 to 1 are usual

    def __call__(self, length: Any) -> Any:
        """Returns the penalty, float32, of lengths n of any shape."""
        return ops.power((ops.cast(length, "float32") + 5.0) / 6.0, self.alpha)


@dataclass(frozen=True)
class PowerPenalty:
    """n^alpha for n tokens, the end token included: fairseq's and CTranslate2's."""

    alpha: float  # 0 for none; 1 is the mean log-probability of a token

    def __call__(self, length: Any) -> Any:
        """Returns the penalty, float32, of lengths n of any shape."""
        return ops.power(ops.cast(length, "float32"), self.alpha)


LENGTH_PENALTIES: dict[str, Any] = {"gnmt": GnmtPenalty, "power": PowerPenalty}


def length_penalty(name: str, alpha: float) -> Any:
    """Returns the length penalty "gnmt" or "power" with an exponent.

    Raises:
        ValueError: the name is unknown.
    """
    if name not in LENGTH_PENALTIES:
        raise ValueError(
            f"`name` must be one of {sorted(LENGTH_PENALTIES)}. Received: name={name!r}"
        )
    return LENGTH_PENALTIES[name](alpha)

"""The likeliest next tokens, found without a sort of the whole vocabulary.

Shapes: b rows, k hypotheses a row, V tokens, C pieces that a vocabulary is cut into.
"""

import math
from typing import Any

from keras import ops

from kbert.decoding.rows import of_parents

# The pieces of a vocabulary have at least so many tokens; smaller vocabularies stay whole.
_LEAST = 16


def log_sum_exp(logits: Any, largest: Any, index: Any) -> Any:
    """log sum exp of logits, by one pass of softmax.

    The softmax p of the largest logit z is exp(z - log sum exp), at least 1 / V: from it the sum
    follows without another exponential of all, and without loss.

    Args:
        logits: float (b, k, V).
        largest: float (b, k), the largest of each.
        index: int (b, k), where it stands.

    Returns:
        (b, k); not a number where all logits are -inf.
    """
    probabilities = ops.softmax(logits, axis=-1)
    return largest - ops.log(taken(probabilities, index[..., None])[..., 0])


def largest_entries(values: Any, count: int) -> tuple[Any, Any]:
    """The largest entries of each hypothesis, the best first; equal ones in any order.

    The vocabulary is cut into C pieces of equal size. The `count` largest entries lie in the
    `count` pieces with the largest maxima: one pass finds the maxima, and only those pieces are
    searched.

    Args:
        values: float (b, k, V).
        count: how many, at most V.

    Returns:
        Values (b, k, count), and their places int32 (b, k, count).
    """
    vocabulary_size = values.shape[-1]
    pieces = _pieces(vocabulary_size, count)
    if pieces is None:
        best, places = ops.top_k(values, count)
        return best, ops.cast(places, "int32")
    size = vocabulary_size // pieces
    rows, hypotheses = ops.shape(values)[0], values.shape[1]
    cut = ops.reshape(values, (-1, hypotheses, pieces, size))
    # (`initial` lets a batch without rows pass.)
    maxima = ops.max(cut, axis=-1, initial=-float("inf"))
    _, chosen = ops.top_k(maxima, count)
    chosen = ops.cast(chosen, "int32")  # (b, k, count)
    firsts = ops.reshape(ops.arange(rows * hypotheses, dtype="int32"), (-1, hypotheses, 1)) * pieces
    index = ops.reshape(firsts + chosen, (-1,))
    searched = ops.take(ops.reshape(values, (-1, size)), index, axis=0)
    best, places = ops.top_k(ops.reshape(searched, (-1, hypotheses, count * size)), count)
    places = ops.cast(places, "int32")
    piece = taken(chosen, places // size)
    return best, piece * size + places % size


def best_continuations(logs: Any, ids: Any, living: Any, count: int) -> tuple[Any, Any, Any]:
    """The likeliest continuations of all hypotheses of a row together.

    Args:
        logs: float32 (b, k, m), log-probabilities of each hypothesis' likeliest next tokens.
        ids: int32 (b, k, m), these tokens.
        living: float32 (b, k), log-probabilities of the hypotheses.
        count: how many continuations.

    Returns:
        Log-probabilities float32, hypotheses and tokens int32, each (b, count), the best first;
        -inf fills up where there are fewer.
    """
    hypotheses, each = logs.shape[1], logs.shape[2]
    total = ops.reshape(logs + living[:, :, None], (-1, hypotheses * each))
    tokens = ops.reshape(ids, (-1, hypotheses * each))
    lacking = count - hypotheses * each
    if lacking > 0:
        total = ops.pad(total, ((0, 0), (0, lacking)), constant_values=-float("inf"))
        tokens = ops.pad(tokens, ((0, 0), (0, lacking)))
    best, index = ops.top_k(total, count)
    index = ops.cast(index, "int32")
    token = of_parents(tokens[:, :, None], index)[:, :, 0]
    return best, ops.minimum(index // each, hypotheses - 1), token


def taken(values: Any, index: Any) -> Any:
    """Entries of each hypothesis, by one gather of flat values.

    Args:
        values: (b, k, V).
        index: int32 (b, k, m).
    """
    rows, hypotheses, size = ops.shape(values)[0], values.shape[1], values.shape[2]
    firsts = ops.reshape(ops.arange(rows * hypotheses, dtype="int32"), (-1, hypotheses, 1)) * size
    found = ops.take(ops.reshape(values, (-1,)), ops.reshape(firsts + index, (-1,)), axis=0)
    return ops.reshape(found, (-1, hypotheses, index.shape[2]))


def _pieces(vocabulary_size: int, count: int) -> int | None:
    """How many pieces make the least work, or None where cutting does not pay."""
    # Sorted are the maxima, V / size of them, and then `count` pieces: least at this size.
    best = math.sqrt(vocabulary_size / count)
    sizes = [s for s in range(_LEAST, vocabulary_size // count + 1) if vocabulary_size % s == 0]
    if not sizes:
        return None
    size = min(sizes, key=lambda s: abs(math.log(s / best)))
    work = vocabulary_size // size + count * size
    return vocabulary_size // size if work < vocabulary_size / 2 else None

"""Length bucketing of sentence pairs: batches of similar length within a budget of tokens.

Both sides of a pair are padded, so a batch has little padding where its pairs agree in both
lengths. Pairs are sorted by their longer side, which the budget counts, and within that by how much
longer the source is. Sources: Vaswani et al. 2017, section 5.1 ("batched together by approximate
sequence length"); the tokens of a batch are counted like `--max-tokens` of fairseq.
"""

from collections.abc import Sequence

import numpy as np

from kbert.data.batches.plans import within_budget

# Standard deviation, in tokens, of the noise on the difference of the two lengths when shuffling.
# On Multi30k in 10,000 subwords, with 4096 tokens a batch, padding is 0.041 without noise, and two
# thirds of a pair's batch are the same in the next epoch; 0.054 and half of it with 0.5; 0.063 and
# a third with 1.
NOISE = 0.5


def parallel_batch_plan(
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    batch_tokens: int,
    shuffle: bool = False,
    seed: int = 0,
    epoch: int = 0,
) -> list[np.ndarray]:
    """Divides sentence pairs into batches of similar length.

    A pure function of its arguments: the same seed and epoch give the same batches on any machine.
    The number of batches, and their rows and widths, depend on the lengths and the budget alone:
    every epoch has the same number of steps. Pairs of rare lengths, such as the longest, share a
    batch with the same pairs again.

    Args:
        source_lengths: int (n,), tokens of each source as the model reads it.
        target_lengths: int (n,), tokens of each target as the model reads it.
        batch_tokens: the most positions of a batch: rows times the longest source or target,
            whichever is longer. A pair longer than that is a batch of its own.
        shuffle: whether batch order and composition depend on seed and epoch; otherwise the longest
            come first, so that memory runs out at once or never.
        seed: seed of the shuffling, at least 0.
        epoch: number of the epoch, from 0.

    Returns:
        Arrays of indices, int64 (rows,), every pair exactly once.

    Raises:
        ValueError: the lengths are not one a pair or not whole numbers of at least 0, or
            `batch_tokens` is below 1.
    """
    sources, targets = checked_lengths(source_lengths, target_lengths)
    if batch_tokens < 1:
        raise ValueError(
            f"`batch_tokens` must be at least 1. Received: batch_tokens={batch_tokens}"
        )
    longest = np.maximum(sources, targets)
    random = np.random.default_rng((seed, epoch)) if shuffle else None
    difference = (sources - targets).astype("float64")
    if random is not None:
        # Ties come in a new order, and pairs of nearly equal lengths swap.
        difference += random.normal(0.0, NOISE, len(difference))
    order = np.lexsort((difference, -longest))  # stable
    batches = within_budget(order, longest, batch_tokens)
    if random is None:
        return batches
    return [batches[i] for i in random.permutation(len(batches))]


def parallel_padding_share(
    source_lengths: np.ndarray, target_lengths: np.ndarray, batches: Sequence[np.ndarray]
) -> float:
    """Returns the share of padding among all positions of the sources and targets, 0 to 1.

    Args:
        source_lengths: int (n,), tokens of each source.
        target_lengths: int (n,), tokens of each target.
        batches: from `parallel_batch_plan`.

    Raises:
        ValueError: the lengths are not one a pair.
    """
    sides = checked_lengths(source_lengths, target_lengths)
    cells = sum(len(rows) * int(side[rows].max()) for rows in batches for side in sides)
    return 1.0 - sum(int(side.sum()) for side in sides) / cells if cells else 0.0


def checked_lengths(
    source_lengths: np.ndarray, target_lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Checks lengths, and returns them as int64 (n,).

    Args:
        source_lengths: int (n,).
        target_lengths: int (n,).

    Raises:
        ValueError: they are not one a pair, or not whole numbers of at least 0.
    """
    sides = {}
    for name, lengths in (("source_lengths", source_lengths), ("target_lengths", target_lengths)):
        given = np.asarray(lengths)
        if given.ndim != 1 or given.size and given.dtype.kind not in "iu":
            raise ValueError(
                f"`{name}` must be whole numbers of shape (n,). Received: shape {given.shape}, "
                f"dtype {given.dtype}"
            )
        if given.size and given.min() < 0:
            raise ValueError(f"`{name}` must be at least 0. Received: {int(given.min())}")
        sides[name] = given.astype("int64")
    sources, targets = sides.values()
    if len(sources) != len(targets):
        raise ValueError(
            "`target_lengths` must be as long as `source_lengths`. Received: "
            f"{len(sources)} sources and {len(targets)} targets"
        )
    return sources, targets

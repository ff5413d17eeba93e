"""Length bucketing: batches of examples of similar length, by count or by a budget of tokens."""

from collections.abc import Callable
from typing import Any

import numpy as np

# Examples are sorted by length inside pools of this many batches. On GLUE a tenth of the positions
# is padding then (two thirds with 1, a fortieth with 100), and batches still mix lengths.
BATCHES_PER_POOL = 16


def batch_plan(
    lengths: np.ndarray,
    batch_size: int | None = 32,
    batch_tokens: int | None = None,
    shuffle: bool = False,
    seed: int = 0,
    epoch: int = 0,
) -> list[np.ndarray]:
    """Divides examples into batches of similar length.

    A pure function of its arguments: the same seed and epoch give the same batches on any machine.
    Returns arrays of indices into `lengths` (n,), every example exactly once.

    Args:
        batch_size: examples a batch (the last one may be smaller), or None.
        batch_tokens: the most positions of a batch (examples times the longest, padding included),
            instead of `batch_size`. An example longer than that is a batch of its own.
        shuffle: whether batch order and composition depend on seed and epoch; otherwise the longest
            come first, so that memory runs out at once or never.
    """
    check_sizes(batch_size, batch_tokens)
    lengths = np.asarray(lengths)
    if not shuffle:
        return _cut(np.argsort(-lengths, kind="stable"), lengths, batch_size, batch_tokens)
    random = np.random.default_rng((seed, epoch))
    order = random.permutation(len(lengths))
    mean = max(1.0, float(lengths.mean()) if len(lengths) else 1.0)
    pool = BATCHES_PER_POOL * (batch_size or max(1, int((batch_tokens or 0) / mean)))
    batches = []
    for start in range(0, len(order), pool):
        chosen = order[start : start + pool]
        # Stable, so that equally long examples keep their shuffled order.
        chosen = chosen[np.argsort(-lengths[chosen], kind="stable")]
        batches.extend(_cut(chosen, lengths, batch_size, batch_tokens))
    return [batches[i] for i in random.permutation(len(batches))]


def random_batches(
    lengths: np.ndarray, batch_size: int, parts: int, seed: int = 0, epoch: int = 0
) -> list[np.ndarray]:
    """Returns batches of random composition, each cut into parts of similar length.

    With an optimizer that accumulates gradients over `parts` steps, an update has the gradient of
    the whole batch, and a part little padding: 32 pairs of GLUE's RTE are 62 % padding in one
    piece, 11 % in eight.

    `batch_size` counts the examples of a whole batch; the remainder is the last batch, or joins the
    one before it where it would not fill the parts. The sizes of a batch's parts differ by at most
    1. Returns arrays of indices into `lengths` (n,), every example exactly once; the parts of a
    batch follow each other, the longest examples first.
    """
    lengths = np.asarray(lengths)
    if not 1 <= parts <= batch_size:
        raise ValueError(
            f"`parts` must be in [1, batch_size={batch_size}]. Received: parts={parts}"
        )
    if parts > len(lengths):
        raise ValueError(
            f"`parts` must be at most the number of examples, {len(lengths)}. "
            f"Received: parts={parts}"
        )
    order = np.random.default_rng((seed, epoch)).permutation(len(lengths))
    cuts = [cut for cut in range(batch_size, len(order), batch_size) if len(order) - cut >= parts]
    batches: list[np.ndarray] = []
    for batch in np.split(order, cuts):
        batch = batch[np.argsort(-lengths[batch], kind="stable")]
        batches.extend(np.array_split(batch, parts))
    return batches


def whole_batches(batches: list[np.ndarray], batch_size: int) -> list[np.ndarray]:
    """Returns the batches of `batch_size` examples, or raises a ValueError if there are none.

    `batch_plan` shuffles which examples are left over.
    """
    whole = [batch for batch in batches if len(batch) == batch_size]
    if not whole:
        raise ValueError(
            "`batch_size` must be at most the number of examples where only whole batches are "
            f"used. Received: batch_size={batch_size}, {sum(map(len, batches))} examples"
        )
    return whole


def padding_share(lengths: np.ndarray, batches: list[np.ndarray]) -> float:
    """Returns the share of padding among all positions of the batches, 0 to 1."""
    lengths = np.asarray(lengths)
    cells = sum(len(batch) * int(lengths[batch].max()) for batch in batches)
    return 1.0 - int(lengths.sum()) / cells if cells else 0.0


def within_budget(
    order: np.ndarray, lengths: np.ndarray, budget: int, most_rows: int | None = None
) -> list[np.ndarray]:
    """Cuts rows, sorted longest first, into batches as large as a budget allows.

    `order` (n,) are indices into `lengths`, which may be in any unit. The budget is the most
    positions of a batch: rows times the longest, padding included. A longer row is a batch of its
    own. A batch has at most `most_rows` rows.
    """
    batches, start = [], 0
    while start < len(order):
        # The first row is the longest: it sets the width of the batch.
        rows = budget // max(1, int(lengths[order[start]]))
        end = start + max(1, rows if most_rows is None else min(rows, most_rows))
        batches.append(order[start:end])
        start = end
    return batches


def check_sizes(batch_size: int | None, batch_tokens: int | None) -> None:
    """Raises a ValueError unless one of the two is given, and at least 1."""
    if batch_tokens is not None and batch_size is not None:
        raise ValueError(
            "`batch_size` must be None where `batch_tokens` is given. Received: "
            f"batch_size={batch_size}, batch_tokens={batch_tokens}"
        )
    name = "batch_size" if batch_tokens is None else "batch_tokens"
    value = batch_size if batch_tokens is None else batch_tokens
    if value is None or value < 1:
        raise ValueError(f"`{name}` must be at least 1. Received: {name}={value}")


def _cut(
    order: np.ndarray, lengths: np.ndarray, batch_size: int | None, batch_tokens: int | None
) -> list[np.ndarray]:
    if batch_size is not None:
        return [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
    return within_budget(order, lengths, batch_tokens or 0)


# Bytes of text per call of a graph: its memory is some multiple of them.
BYTES_AT_A_TIME = 2_000_000


def size_batches(
    sizes: np.ndarray, most_rows: int, most_bytes: int = BYTES_AT_A_TIME
) -> list[np.ndarray]:
    """Divides rows, by their sizes int (n,), into batches of indices int64, the largest rows first.

    `most_bytes` limits rows times largest size; a larger row is a batch of its own. No batch is
    empty: there is none where there are no rows.
    """
    order = np.argsort(-np.asarray(sizes, "int64"), kind="stable")
    return within_budget(order, sizes, most_bytes, most_rows)


def answers_of_rows(
    run: Callable[[np.ndarray], dict[str, np.ndarray]],
    sizes: np.ndarray,
    most_rows: int,
    most_bytes: int = BYTES_AT_A_TIME,
) -> list[dict[str, Any]]:
    """Runs a function over rows, in the batches of `size_batches`; returns a dict a row, in order.

    `run` maps the indices of some rows to results, name -> array with an entry a row.
    """
    answers: list[dict[str, Any]] = [{} for _ in sizes]
    for rows in size_batches(sizes, most_rows, most_bytes):
        found = run(rows)
        for place, row in enumerate(rows.tolist()):
            answers[row] = {name: values[place] for name, values in found.items()}
    return answers


def check_fixed_length(fixed_length: int | None, lengths: np.ndarray) -> None:
    """Raises a ValueError if an example is longer than batches of a fixed length."""
    longest = int(lengths.max(initial=0))
    if fixed_length is not None and fixed_length < longest:
        raise ValueError(
            f"`fixed_length` must be at least the longest example, {longest} tokens. Received: "
            f"fixed_length={fixed_length}"
        )

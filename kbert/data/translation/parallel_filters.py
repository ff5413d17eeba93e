"""Filters of sentence pairs that teach little: empty ones, long ones, unlikely ones.

Source: the limits are those of `clean-corpus-n.perl` of Moses: length, and the ratio of lengths.
"""

from dataclasses import dataclass

import numpy as np

from kbert.data.translation.parallel_text import ParallelText

# Lines that a report keeps for each reason.
SHOWN_LINES = 10

_TEXTS = {
    "empty_both": "empty on both sides",
    "empty_source": "without a source sentence",
    "empty_target": "without a target sentence",
    "too_long": "too long",
    "ratio": "of too different lengths",
}


@dataclass(frozen=True)
class LeftOut:
    """The pairs that were left out for one reason.

    Attributes:
        count: number of pairs.
        lines: the lines of the first of them, at most `SHOWN_LINES`.
    """

    count: int
    lines: list[int]


@dataclass(frozen=True)
class FilterReport:
    """Report of a filter. `str()` returns it in words.

    Attributes:
        source: where the pairs come from.
        total: the number of pairs before.
        kept: int64 (n,), indices of the kept pairs, ascending, with which whatever belongs to the
            pairs, such as their tokens, can be filtered likewise.
        left_out: the pairs left out by reason: "empty_both", "empty_source", "empty_target",
            "too_long", "ratio". A pair counts once, for the first reason that holds; reasons that
            never held are absent.
    """

    source: str
    total: int
    kept: np.ndarray
    left_out: dict[str, LeftOut]

    def __str__(self) -> str:
        """Returns one line of the counts, and one for each reason."""
        head = f"{self.source}: {len(self.kept)} of {self.total} sentence pairs kept"
        parts = [
            f"{found.count} {_TEXTS[reason]} (line{'s' * (len(found.lines) > 1)} "
            f"{', '.join(map(str, found.lines))}"
            f"{', ...' if found.count > len(found.lines) else ''})"
            for reason, found in self.left_out.items()
        ]
        return "\n".join([head, *(f"  left out: {part}" for part in parts)])


def filter_parallel(
    examples: ParallelText,
    source_lengths: np.ndarray | None = None,
    target_lengths: np.ndarray | None = None,
    *,
    max_length: int | None = None,
    max_ratio: float | None = None,
    keep_empty: bool = False,
) -> tuple[ParallelText, FilterReport]:
    """Leaves out pairs by emptiness, length and ratio of lengths.

    Args:
        examples: sentences, with or without translations.
        source_lengths: int (n,), length of each sentence, in tokens or any other unit; needed for
            `max_length` and `max_ratio`.
        target_lengths: int (n,), the same of the translations; needed where there are any.
        max_length: pairs with a longer side are left out; None for any length.
        max_ratio: pairs are left out where one side is more than this many times as long as the
            other, at least 1; None for any ratio.
        keep_empty: whether to keep pairs with an empty side, which are otherwise left out; their
            ratio is not checked. A side of white space only, or of length 0, is empty.

    Returns:
        The kept pairs, in their order, and the report.

    Raises:
        ValueError: an argument is out of range, lengths are missing, or are not one a pair.
    """
    _check(examples, source_lengths, target_lengths, max_length, max_ratio)
    total = len(examples)
    empty_source = _empty(examples.sources, source_lengths)
    empty_target = np.zeros(total, bool)
    if examples.targets is not None:
        empty_target = _empty(examples.targets, target_lengths)
    reasons: dict[str, np.ndarray] = {}
    if not keep_empty:
        reasons["empty_both"] = empty_source & empty_target
        reasons["empty_source"] = empty_source
        reasons["empty_target"] = empty_target
    sides = [np.asarray(x) for x in (source_lengths, target_lengths) if x is not None]
    if max_length is not None:
        reasons["too_long"] = np.max(sides, axis=0, initial=0) > max_length
    if max_ratio is not None:
        longer, shorter = np.maximum(*sides), np.minimum(*sides)
        # A product, so that there is no division by a length of 0.
        unlike = longer > max_ratio * shorter
        reasons["ratio"] = unlike & ~empty_source & ~empty_target
    kept = np.ones(total, bool)
    left_out = {}
    for reason, holds in reasons.items():
        found = np.flatnonzero(holds & kept)
        kept &= ~holds
        if len(found):
            lines = [examples.lines[i] for i in found[:SHOWN_LINES]]
            left_out[reason] = LeftOut(len(found), lines)
    indices = np.flatnonzero(kept)
    chosen = examples if len(indices) == total else examples.select(indices)
    return chosen, FilterReport(examples.source, total, indices, left_out)


def _empty(texts: list[str], lengths: np.ndarray | None) -> np.ndarray:
    blank = np.array([not text.strip() for text in texts], bool)
    # A tokenizer may leave nothing of a text of control characters.
    return blank if lengths is None else blank | (np.asarray(lengths) == 0)


def _check(
    examples: ParallelText,
    source_lengths: np.ndarray | None,
    target_lengths: np.ndarray | None,
    max_length: int | None,
    max_ratio: float | None,
) -> None:
    if max_length is not None and max_length < 1:
        raise ValueError(f"`max_length` must be at least 1. Received: max_length={max_length}")
    if max_ratio is not None and not max_ratio >= 1:
        raise ValueError(f"`max_ratio` must be at least 1. Received: max_ratio={max_ratio}")
    if max_ratio is not None and examples.targets is None:
        raise ValueError(
            "`max_ratio` must be None for sentences without translations. Received: "
            f"max_ratio={max_ratio}"
        )
    limit = "max_length" if max_length is not None else "max_ratio"
    is_needed = max_length is not None or max_ratio is not None
    for name, lengths, texts in (
        ("source_lengths", source_lengths, examples.sources),
        ("target_lengths", target_lengths, examples.targets),
    ):
        if lengths is None:
            if is_needed and texts is not None:
                raise ValueError(f"`{name}` must be given with `{limit}`. Received: {name}=None")
            continue
        if texts is None:
            raise ValueError(
                f"`{name}` must be None for sentences without translations. Received: "
                f"{np.size(lengths)} lengths"
            )
        if np.shape(lengths) != (len(texts),):
            raise ValueError(
                f"`{name}` must have one length a pair, {len(texts)} of them. Received: shape "
                f"{np.shape(lengths)}"
            )

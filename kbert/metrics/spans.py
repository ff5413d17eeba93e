"""Metrics of questions with any number of answers, given as spans of their context."""

from collections.abc import Iterable, Sequence
from operator import index

Spans = Sequence[Sequence[tuple[int, int]]]


def exact_and_overlap_f1(true_spans: Spans, predicted_spans: Spans) -> dict[str, float]:
    """Returns precision, recall and F1 of spans, by exact match and by overlap.

    Exact: a predicted span counts if it is one of the gold spans. Overlap: characters count, each
    once however many spans cover it, so a span that is nearly right is nearly counted. Both are
    summed over the questions before precision and recall are computed; ratios of 0 / 0 are 0. A
    span given twice counts once.

    Args:
        true_spans: for each question its gold spans (start, end), with an exclusive `end`, in code
            points of the context; empty where there is no answer.
        predicted_spans: the model's, for the same questions in the same order.

    Returns:
        "span_exact_precision", "span_exact_recall", "span_exact_f1", "span_overlap_precision",
        "span_overlap_recall" and "span_overlap_f1", from 0 to 1.

    Raises:
        ValueError: no questions, unequal numbers of them, or a span that is empty or begins before
            0.
    """
    if not len(true_spans) or len(true_spans) != len(predicted_spans):
        raise ValueError(
            "`true_spans` and `predicted_spans` must hold the same questions, at least one. "
            f"Received: {len(true_spans)} and {len(predicted_spans)} questions"
        )
    exact, overlap = _Counts(), _Counts()
    for i, (right, given) in enumerate(zip(true_spans, predicted_spans)):
        true = _checked("true_spans", right, i)
        predicted = _checked("predicted_spans", given, i)
        exact.add(len(true & predicted), len(predicted), len(true))
        pieces, given_pieces = _merged(true), _merged(predicted)
        shared = _shared(pieces, given_pieces)
        overlap.add(shared, _covered(given_pieces), _covered(pieces))
    return {**exact.ratios("span_exact"), **overlap.ratios("span_overlap")}


class _Counts:
    """Counts of correct, predicted and gold items."""

    def __init__(self) -> None:
        self.right = self.predicted = self.true = 0

    def add(self, right: int, predicted: int, true: int) -> None:
        self.right += right
        self.predicted += predicted
        self.true += true

    def ratios(self, prefix: str) -> dict[str, float]:
        both = self.predicted + self.true
        return {
            f"{prefix}_precision": self.right / self.predicted if self.predicted else 0.0,
            f"{prefix}_recall": self.right / self.true if self.true else 0.0,
            f"{prefix}_f1": 2 * self.right / both if both else 0.0,
        }


def _checked(
    argument: str, spans: Iterable[tuple[int, int]], question: int
) -> set[tuple[int, int]]:
    found = set()
    for span in spans:
        pair = tuple(index(offset) for offset in span)
        if len(pair) != 2 or not 0 <= pair[0] < pair[1]:
            raise ValueError(
                f"`{argument}` must hold pairs of a start and an end behind it. Received: "
                f"{span!r} for question {question}"
            )
        found.add((pair[0], pair[1]))
    return found


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merges spans into sorted pieces that do not touch."""
    pieces: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if pieces and start <= pieces[-1][1]:
            pieces[-1] = (pieces[-1][0], max(end, pieces[-1][1]))
        else:
            pieces.append((start, end))
    return pieces


def _covered(pieces: Iterable[tuple[int, int]]) -> int:
    return sum(end - start for start, end in pieces)


def _shared(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> int:
    """Returns the number of characters that both cover."""
    return sum(
        max(0, min(end, other_end) - max(start, other_start))
        for start, end in first
        for other_start, other_end in second
    )

"""Tags of words in plain Python: what is spelled right, the likeliest such, and entities.

Source: Ramshaw and Marcus 1995 as conlleval's IOB2 (B- begins every entity); Ratinov and Roth 2009
(BILOU, here with E and S for L and U); Viterbi 1967. Nothing of kbert in it.
"""

import itertools
from collections.abc import Sequence

import numpy as np

Entity = tuple[str, int, int]  # type, first word, last word


def spelled_right(tags: Sequence[str]) -> bool:
    """Whether BIO tags, or IOBES tags if any is E or S, are a possible sequence."""
    return _right(tags, any(tag[0] in "ES" for tag in tags))


def _right(tags: Sequence[str], closing: bool) -> bool:
    opened = None  # the entity that the next tag may continue: its type
    for tag in tags:
        prefix, kind = tag[0], tag[2:]
        if prefix in "IE":
            if opened != kind:
                return False
        elif closing and opened is not None:
            return False
        opened = kind if prefix in "BI" else None
    return not (closing and opened is not None)


def best_tags(log_probabilities: np.ndarray, names: Sequence[str]) -> tuple[int, ...]:
    """The likeliest possible sequence for (words, tags), by trying every sequence."""
    closing = any(name[0] in "ES" for name in names)
    best, best_score = (), -np.inf
    for numbers in itertools.product(range(len(names)), repeat=len(log_probabilities)):
        if not _right([names[i] for i in numbers], closing):
            continue
        score = sum(log_probabilities[word, i] for word, i in enumerate(numbers))
        if score > best_score:
            best, best_score = numbers, score
    return best


def best_score(log_probabilities: np.ndarray, names: Sequence[str]) -> float:
    """The score of the likeliest possible sequence, by dynamic programming in double precision."""
    closing = any(name[0] in "ES" for name in names)

    def allowed(*tags: str) -> bool:
        return _right([tag for tag in tags if tag], False)

    def neighbours(before: str, after: str) -> bool:
        # A pair on its own cannot tell what was opened before it: I may follow what is open.
        if after[0] in "IE":
            return before[0] in "BI" and before[2:] == after[2:]
        return not (closing and before[0] in "BI")

    steps = np.array([[neighbours(a, b) for b in names] for a in names])
    scores = np.where([allowed(name) for name in names], log_probabilities[0], -np.inf)
    for word in log_probabilities[1:].astype("float64"):
        scores = np.where(steps, scores[:, None], -np.inf).max(axis=0) + word
    ends = np.array([not (closing and name[0] in "BI") for name in names])
    return float(scores[ends].max())


def entities(tags: Sequence[str]) -> list[Entity]:
    """The entities of tags that are spelled right, as seqeval reads them."""
    found: list[Entity] = []
    begin = None
    for word, tag in enumerate([*tags, "O"]):
        if tag[0] in "BSO" and begin is not None:
            found.append((tags[begin][2:], begin, word - 1))
            begin = None
        if tag[0] in "BS":
            begin = word
    return found

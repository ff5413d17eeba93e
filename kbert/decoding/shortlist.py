"""Lexical shortlists: the target tokens that a search may take, from the tokens of the source.

A step of the search then computes logits of some hundred tokens instead of the whole vocabulary.
The translations of a token are those that IBM's model 1 finds likeliest (Brown et al. 1993), as in
Jean et al. 2015 and in Marian.

Shapes: U source vocabulary, N translations of a token, F tokens that are allowed everywhere.
"""

import base64
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

_ITERATIONS = 5
# Pairs of a source and a target token that are looked at: 50 million take 2.8 GiB and 27 s.
_MOST_PAIRS = 50_000_000


@keras.saving.register_keras_serializable("kbert")
class Shortlist:
    """The likely translations of each source token, and the tokens that may stand everywhere.

    Args:
        translations: int (U, N), target tokens, those of a row in any order, repeated ones too.
        everywhere: int (F,).

    Raises:
        ValueError: an array has another shape or dtype, or a negative id.
    """

    def __init__(self, translations: Any, everywhere: Any) -> None:
        self.translations = _token_ids("translations", translations, 2)
        self.everywhere = _token_ids("everywhere", everywhere, 1)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments, the translations' int32 in Base64."""
        coded = base64.b64encode(self.translations.astype("<i4").tobytes()).decode("ascii")
        everywhere = self.everywhere.tolist()
        return {"translations": coded, "rows": len(self.translations), "everywhere": everywhere}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Shortlist":
        """Makes the shortlist of a configuration from `get_config`."""
        numbers = np.frombuffer(base64.b64decode(config["translations"]), "<i4")
        return cls(numbers.reshape(config["rows"], -1), np.array(config["everywhere"], "int32"))

    def check(self, source_size: int, target_size: int) -> None:
        """Raises a ValueError unless the vocabularies have these sizes."""
        largest = int(max(self.translations.max(initial=0), self.everywhere.max(initial=0)))
        if len(self.translations) != source_size or largest >= target_size:
            raise ValueError(
                f"`shortlist` must have a row for each of {source_size} source pieces, and ids "
                f"below {target_size}. Received: {len(self.translations)} rows, ids up to {largest}"
            )


def _token_ids(name: str, value: Any, rank: int) -> np.ndarray:
    ids = np.asarray(value)
    if ids.ndim != rank or ids.dtype.kind not in "iu" or (ids < 0).any():
        raise ValueError(
            f"`{name}` must be token ids, at least 0, of rank {rank}. Received: {ids.dtype} of "
            f"shape {ids.shape}"
        )
    return ids.astype("int32")


def check_sentences(sources: Sequence[Any], targets: Sequence[Any]) -> None:
    """Raises a ValueError unless sentences and translations are equally many, at least one."""
    if len(sources) != len(targets) or not len(sources):
        raise ValueError(
            "`sources` and `targets` must be equally many sentences, at least one. Received: "
            f"{len(sources)} and {len(targets)}"
        )


def learn_shortlist(
    sources: Sequence[np.ndarray],
    targets: Sequence[np.ndarray],
    source_size: int,
    translations: int = 100,
    everywhere: int = 100,
) -> Shortlist:
    """Finds the likeliest translations of each source token in sentences and their translations.

    Args:
        sources: token ids of n sentences, each int (S,).
        targets: those of their translations, each int (T,).
        source_size: U.
        translations: N, the most translations of a token.
        everywhere: F, how many of the most frequent target tokens are allowed everywhere.

    Returns:
        The shortlist. A token that no sentence has gets no translations.

    Raises:
        ValueError: there are no sentences, or not as many sources as targets; one has no tokens; or
            a number is below 1.
    """
    check_sentences(sources, targets)
    if not all(map(len, (*sources, *targets))):
        raise ValueError("`sources` and `targets` must have tokens, each the end token at least.")
    for name, number in (("translations", translations), ("everywhere", everywhere)):
        if number < 1:
            raise ValueError(f"`{name}` must be at least 1. Received: {number}")
    counts = np.bincount(np.concatenate(targets))
    frequent = np.argsort(-counts, kind="stable")[:everywhere]
    frequent = frequent[counts[frequent] > 0]
    source, target, probability = _model_1(sources, targets)
    # The likeliest first, within each source token.
    order = np.lexsort((-probability, source))
    source, target = source[order], target[order]
    starts = np.searchsorted(source, np.arange(source_size))
    rank = np.arange(len(source)) - starts[source]
    kept = rank < translations
    table = np.full((source_size, translations), frequent[0], "int32")
    table[source[kept], rank[kept]] = target[kept]
    return Shortlist(table, frequent)


def _model_1(
    sources: Sequence[np.ndarray], targets: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns source tokens, target tokens that occur with them, and p(target | source)."""
    texts = list(zip(sources, targets, strict=True))
    stride = -(-sum(len(s) * len(t) for s, t in texts) // _MOST_PAIRS)
    texts = texts[:: max(stride, 1)]
    # For each target token all of its sentence's source tokens, which share it between them.
    of_pairs = np.concatenate([np.tile(s, len(t)) for s, t in texts])
    to_pairs = np.concatenate([np.repeat(t, len(s)) for s, t in texts])
    shares = np.concatenate([np.full(len(t), len(s)) for s, t in texts])
    width = 1 + int(to_pairs.max())
    keys = of_pairs.astype("int64") * width + to_pairs
    keys, index = np.unique(keys, return_inverse=True)
    source, target = keys // width, keys % width
    begins = np.cumsum(shares) - shares
    probability = np.ones(len(keys))
    for _ in range(_ITERATIONS):
        expected = probability[index]
        totals = np.add.reduceat(expected, begins)
        expected /= np.repeat(totals, shares)
        counts = np.bincount(index, expected, len(keys))
        probability = counts / np.bincount(source, counts)[source]
    return source, target, probability

"""Sentence pairs as the input of a run: tokenized, filtered, with BERT's states of the sources."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kbert.data.encoder_features.feature_cache import CacheReport
from kbert.data.encoder_features.text_features import TextFeatures
from kbert.data.translation.parallel_filters import FilterReport, filter_parallel
from kbert.data.translation.parallel_pipeline import PackedPairs
from kbert.data.translation.parallel_text import ParallelText
from kbert.tasks.translation.bert_features import bert_features
from kbert.tasks.translation.model import Translator

# Longer than any limit: the number of pieces of a truncated text is unknown.
_UNCOUNTED = np.iinfo("int32").max


@dataclass(frozen=True)
class PreparedPairs:
    """Pairs that passed the filter, as token ids.

    Attributes:
        text: The pairs.
        packed: Their token ids.
        report: The pairs that were left out.
        features: BERT's states of the sources, if they are kept on disk; else None.
        cached: Report of computing these, or None.
    """

    text: ParallelText
    packed: PackedPairs
    report: FilterReport
    features: TextFeatures | None = None
    cached: CacheReport | None = None

    def __len__(self) -> int:
        """The number of pairs."""
        return len(self.text)

    @property
    def tokens(self) -> int:
        """Number of tokens of all sentences and translations, end tokens included."""
        return int(self.packed.sources.lengths.sum() + self.packed.targets.lengths.sum())

    def dataset(self, model: Translator, **kwargs: Any) -> Any:
        """Returns length-bucketed batches.

        Args:
            model: The translator that the pairs were prepared for.
            **kwargs: See `kbert.data.translation.parallel_pipeline.parallel_dataset`.
        """
        return model.dataset(self.packed, bert_states=self.features, **kwargs)


def prepare_pairs(
    model: Translator,
    text: ParallelText,
    *,
    max_length: int | None = None,
    max_ratio: float | None = None,
    features: str | None = None,
) -> PreparedPairs:
    """Tokenizes pairs for a translator, and leaves out those unfit for training or evaluation.

    Pairs with an empty side are always left out.

    Args:
        model: The translator.
        text: The pairs.
        max_length: Pairs with more pieces on a side are left out; None truncates longer sides.
        max_ratio: See `kbert.data.translation.parallel_filters.filter_parallel`.
        features: Folder of BERT's states, or None to compute them in each batch.

    Raises:
        ValueError: No pair is left.
    """
    packed = model.pack(text.sources, text.targets)
    lengths = [
        np.where(side.truncated, _UNCOUNTED, side.lengths - 1)  # without the end token
        for side in (packed.sources, packed.targets)
    ]
    kept, report = filter_parallel(text, *lengths, max_length=max_length, max_ratio=max_ratio)
    _check_some(kept, text, report)
    packed = packed.select(report.kept) if len(kept) < len(text) else packed
    if features is None or packed.bert is None:
        return PreparedPairs(kept, packed, report)
    states, cached = bert_features(model.transformer.bert, packed.bert, features)
    return PreparedPairs(kept, packed, report, states, cached)


def check_pairs(text: ParallelText) -> None:
    """Checks that some pair can be evaluated, without tokenizing any.

    Args:
        text: The pairs.

    Raises:
        ValueError: Each pair has an empty side.
    """
    kept, report = filter_parallel(text)
    _check_some(kept, text, report)


def _check_some(kept: ParallelText, text: ParallelText, report: FilterReport) -> None:
    if not len(kept):
        raise ValueError(f"{text.source}: there must be sentence pairs. Received: none. {report}")


def left_out(report: FilterReport) -> dict[str, Any]:
    """Returns what a filter left out, as JSON types: reason -> count and the first lines.

    Args:
        report: The report of `PreparedPairs`.
    """
    return {
        reason: {"count": found.count, "lines": found.lines}
        for reason, found in report.left_out.items()
    }

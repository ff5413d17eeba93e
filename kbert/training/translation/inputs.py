"""Sentence pairs as a run uses them: tokenized, filtered, with what BERT makes of the sources."""

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

# Longer than any limit: how many pieces a text had that was cut, nobody counted.
_UNCOUNTED = np.iinfo("int32").max


@dataclass(frozen=True)
class PreparedPairs:
    """Pairs that stayed, as token ids.

    Attributes:
        text: The pairs.
        packed: Their token ids.
        report: What was left out.
        features: What BERT makes of the sources, where that is kept; else None.
        cached: What was computed for that, or None.
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
        """Tokens of all sentences and translations, the ends included."""
        return int(self.packed.sources.lengths.sum() + self.packed.targets.lengths.sum())

    def dataset(self, model: Translator, **kwargs: Any) -> Any:
        """Batches of like length; see `kbert.data.translation.parallel_pipeline.parallel_dataset`.

        Args:
            model: The translator that the pairs were prepared for.
            **kwargs: Arguments from there.
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
    """Tokenizes pairs for a translator, and leaves out what it cannot learn or be measured on.

    Pairs with an empty side are always left out.

    Args:
        model: The translator.
        text: The pairs.
        max_length: Pairs with more pieces on a side are left out; None: longer sides are cut.
        max_ratio: See `kbert.data.translation.parallel_filters.filter_parallel`.
        features: Folder of BERT's states, or None to compute them in each batch.

    Raises:
        ValueError: No pair stays.
    """
    packed = model.pack(text.sources, text.targets)
    lengths = [
        np.where(side.truncated, _UNCOUNTED, side.lengths - 1)  # without the end
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
    """Looks for a pair that can be measured, without tokenizing any.

    Args:
        text: The pairs.

    Raises:
        ValueError: Each has an empty side.
    """
    kept, report = filter_parallel(text)
    _check_some(kept, text, report)


def _check_some(kept: ParallelText, text: ParallelText, report: FilterReport) -> None:
    if not len(kept):
        raise ValueError(f"{text.source}: there must be sentence pairs. Received: none. {report}")


def left_out(report: FilterReport) -> dict[str, Any]:
    """What a filter left out, as JSON can hold it: reason -> count and the first lines.

    Args:
        report: From `PreparedPairs`.
    """
    return {
        reason: {"count": found.count, "lines": found.lines}
        for reason, found in report.left_out.items()
    }

"""Sentence pairs as the input of a run: tokenized, filtered, with BERT's states of the sources.

On a TPU, which compiles each shape, batches have a single fixed one.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.data.features.cache import CacheReport
from kbert.data.features.text_features import TextFeatures
from kbert.data.translation.parallel_batches import Bucket
from kbert.data.translation.parallel_pipeline import PackedPairs
from kbert.data.translation.parallel_text import FilterReport, ParallelText, filter_parallel
from kbert.options.configuration import TPU
from kbert.pipelines.frozen_states import frozen_states
from kbert.tasks.translation.model import Translator
from kbert.training.config.translation_config import TranslationConfig

# Longer than any limit: the number of pieces of a truncated text is unknown.
_UNCOUNTED = np.iinfo("int32").max
# Lengths are a multiple of it, and rows too if there are at least as many.
_MULTIPLE = 8


@dataclass(frozen=True)
class PreparedPairs:
    """Pairs that passed the filter, as token ids; the report has those that were left out.

    `features` are BERT's states of the sources if they are kept on disk, and `cached` is the report
    of computing them; else None.
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
        """Returns length-bucketed batches for the translator that the pairs were prepared for.

        See `kbert.data.translation.parallel_pipeline.parallel_dataset`.
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

    Those are pairs with an empty side, with more than `max_length` pieces on a side (None truncates
    longer sides), or against `max_ratio` of `kbert.data.translation.parallel_text`; none left is
    a ValueError. BERT's states are kept in the folder `features`; None computes them in each batch.
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
    states, cached = frozen_states(model.transformer.bert, packed.bert, features)
    return PreparedPairs(kept, packed, report, states, cached)


def check_pairs(text: ParallelText) -> None:
    """Checks that some pair can be evaluated, without tokenizing any; else it is a ValueError."""
    kept, report = filter_parallel(text)
    _check_some(kept, text, report)


def _check_some(kept: ParallelText, text: ParallelText, report: FilterReport) -> None:
    if not len(kept):
        raise ValueError(f"{text.source}: there must be sentence pairs. Received: none. {report}")


def left_out(report: FilterReport) -> dict[str, Any]:
    """Returns what a filter left out, as JSON types: reason -> count and the first lines."""
    return {
        reason: {"count": found.count, "lines": found.lines}
        for reason, found in report.left_out.items()
    }


def translation_bucket(
    config: TranslationConfig, positions: int | None = None, replicas: int = 1
) -> Bucket:
    """Returns the shape that holds the longest pairs, with as many rows as `batch_tokens` allows.

    The model reads at most `positions` pieces, end token included; by default the configuration's,
    which do not hold for a model that was trained before. Replicas share the rows equally; fewer
    rows than replicas are a ValueError.
    """
    most = positions or config.max_sequence_length
    longest = min(config.max_length or most, most - 1)
    length = min(-(-(longest + 1) // _MULTIPLE) * _MULTIPLE, most)
    rows = config.batch_tokens // length
    if rows < replicas:
        each = f"a pair of {length} tokens" + (f" for each of {replicas} cores" * (replicas > 1))
        raise ValueError(
            f"`batch_tokens` must be at least {replicas * length}, {each}. Received: "
            f"batch_tokens={config.batch_tokens}"
        )
    multiple = math.lcm(_MULTIPLE, replicas)
    return Bucket(rows - rows % (replicas if rows < multiple else multiple), length)


def train_buckets(config: TranslationConfig, positions: int | None = None) -> list[Bucket] | None:
    """Returns the fixed shapes of a run's batches, or None for length-bucketed batches.

    It is called within the scope of the run's strategy, whose replicas share a batch.
    """
    if config.strategy != TPU:
        return None
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    return [translation_bucket(config, positions, replicas)]

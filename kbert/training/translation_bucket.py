"""The one shape of a translation's batches where each shape would be compiled: on a TPU."""

from kbert.data.fixed_batches import Bucket
from kbert.training.translation_config import TranslationConfig

# Lengths are a multiple of it, and rows too where there are so many: so many cores can share them.
_MULTIPLE = 8


def translation_bucket(config: TranslationConfig, positions: int | None = None) -> Bucket:
    """The shape that holds the longest pairs, with as many rows as `batch_tokens` allows.

    Args:
        config: The run's configuration.
        positions: The most pieces that the model reads, with the end; by default what the
            configuration says, which is not that of a model that was trained before.

    Raises:
        ValueError: `batch_tokens` allows no pair.
    """
    most = positions or config.max_sequence_length
    longest = min(config.max_length or most, most - 1)
    length = min(-(-(longest + 1) // _MULTIPLE) * _MULTIPLE, most)
    rows = config.batch_tokens // length
    if rows < 1:
        raise ValueError(
            f"`batch_tokens` must be at least {length}, a pair of the longest. Received: "
            f"batch_tokens={config.batch_tokens}"
        )
    return Bucket(rows if rows < _MULTIPLE else rows - rows % _MULTIPLE, length)


def train_buckets(
    config: TranslationConfig, positions: int | None = None
) -> list[Bucket] | None:
    """The shapes of a run's batches, or None for those of like length.

    Args:
        config: The run's configuration.
        positions: See `translation_bucket`.
    """
    return [translation_bucket(config, positions)] if config.strategy == "tpu" else None

"""The single fixed shape of translation batches on a TPU, which compiles each shape."""

import math

import tensorflow as tf

from kbert.data.translation.parallel_batches import Bucket
from kbert.options.shared import TPU
from kbert.training.config.translation_config import TranslationConfig

# Lengths are a multiple of it, and rows too if there are at least as many.
_MULTIPLE = 8


def translation_bucket(
    config: TranslationConfig, positions: int | None = None, replicas: int = 1
) -> Bucket:
    """Returns the shape that holds the longest pairs, with as many rows as `batch_tokens` allows.

    Args:
        config: The run's configuration.
        positions: The most pieces that the model reads, end token included; by default the
            configuration's, which does not hold for a model that was trained before.
        replicas: Number of replicas, which share the rows of a batch equally.

    Raises:
        ValueError: `batch_tokens` does not allow one pair per replica.
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


def train_buckets(
    config: TranslationConfig, positions: int | None = None
) -> list[Bucket] | None:
    """Returns the fixed shapes of a run's batches, or None for length-bucketed batches.

    Args:
        config: The run's configuration; called within the scope of its strategy, whose replicas
            share a batch.
        positions: The most pieces that the model reads, end token included, or None.

    Raises:
        ValueError: `batch_tokens` does not allow one pair per replica.
    """
    if config.strategy != TPU:
        return None
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    return [translation_bucket(config, positions, replicas)]

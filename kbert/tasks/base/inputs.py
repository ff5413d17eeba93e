"""Batches of a run from tokenized examples."""

from typing import Any

import numpy as np

from kbert.data.batches.packed_examples import PackedExamples
from kbert.data.batches.plans import batch_plan, padding_share, whole_batches

TPU = "tpu"


def batch_sizes(config: Any) -> dict[str, int | None]:
    """Returns the arguments `batch_size` and `batch_tokens` of `batch_plan` for a run.

    Args:
        config: The run's configuration.
    """
    if config.batch_tokens is not None:
        return {"batch_size": None, "batch_tokens": config.batch_tokens}
    return {"batch_size": config.batch_size, "batch_tokens": None}


def fixed_shapes(model: Any, config: Any) -> dict[str, Any]:
    """Returns the arguments of `batched_dataset` for batches of one shape on a TPU.

    A TPU compiles each shape; elsewhere the dict is empty, and batches are length-bucketed.

    Args:
        model: The run's model.
        config: The run's configuration.
    """
    if not _is_fixed(config):
        return {}
    return {"fixed_length": model.max_sequence_length, "drop_remainder": True}


def _is_fixed(config: Any) -> bool:
    return config.strategy == TPU


class PackedInput:
    """Examples in length-bucketed batches; a subclass has their token ids in `packed`."""

    packed: PackedExamples

    @property
    def lengths(self) -> np.ndarray:
        """Number of real tokens of each example, int (n,)."""
        return self.packed.lengths

    @property
    def truncated(self) -> np.ndarray:
        """Mask of truncated examples, bool (n,)."""
        return self.packed.truncated

    def steps(self, config: Any) -> list[int]:
        """Returns the number of steps of each epoch.

        Args:
            config: The run's configuration.
        """
        return [len(self._plan(config, epoch)) for epoch in range(config.epochs)]

    def padding_share(self, config: Any) -> float:
        """Returns the share of padding in the batches of the first epoch, 0 to 1.

        Args:
            config: The run's configuration.
        """
        return padding_share(self.lengths, self._plan(config, 0))

    def _plan(self, config: Any, epoch: int) -> list[np.ndarray]:
        sizes = batch_sizes(config)
        found = batch_plan(self.lengths, **sizes, shuffle=True, seed=config.seed, epoch=epoch)
        return whole_batches(found, config.batch_size) if _is_fixed(config) else found

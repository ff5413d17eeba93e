"""Windows of long texts: what a reading model trains on."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kbert.data.batching import batch_plan, padding_share
from kbert.data.windowed_examples import WindowedExamples
from kbert.training.run_config import RunConfig
from kbert.training.run_input import batch_sizes


@dataclass(frozen=True)
class WindowInput:
    """Texts, cut into windows and tokenized once.

    Attributes:
        windows: The windows.
        targets: What the model learns for them.
    """

    windows: WindowedExamples
    targets: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """Real tokens of each window, int (W,)."""
        return self.windows.packed.lengths

    @property
    def truncated(self) -> np.ndarray:
        """Whether the question of a window was cut, bool (W,)."""
        return self.windows.packed.truncated

    def dataset(self, model: Any, config: RunConfig, targets: Any = None) -> Any:
        """Returns the batches to train on; each pass shuffles anew.

        Args:
            model: The model that the windows were cut for.
            config: The run's configuration.
            targets: `targets` of this, or None for batches without.
        """
        return model.dataset(
            self.windows, targets, **batch_sizes(config), shuffle=True, seed=config.seed
        )

    def steps(self, config: RunConfig) -> list[int]:
        """Returns the number of steps of each epoch.

        Args:
            config: The run's configuration.
        """
        return [len(self._plan(config, epoch)) for epoch in range(config.epochs)]

    def padding_share(self, config: RunConfig) -> float:
        """Returns the share of padding in the batches of the first epoch, 0 to 1.

        Args:
            config: The run's configuration.
        """
        return padding_share(self.lengths, self._plan(config, 0))

    def _plan(self, config: RunConfig, epoch: int) -> list[np.ndarray]:
        sizes = batch_sizes(config)
        return batch_plan(self.lengths, **sizes, shuffle=True, seed=config.seed, epoch=epoch)

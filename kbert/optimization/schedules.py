"""Learning-rate schedules, as functions of the number of finished steps."""

from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable("kbert")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Rises linearly from 0 to the peak, then falls linearly to 0.

    Source: Devlin et al. 2019, appendix A.2.

    Args:
        peak: the highest learning rate.
        total_steps: steps of the whole training; the rate is 0 from there on.
        warmup_steps: steps of the rise.

    Raises:
        ValueError: `peak` is negative, or not 0 <= warmup_steps <= total_steps with
            total_steps >= 1.
    """

    def __init__(self, peak: float, total_steps: int, warmup_steps: int = 0) -> None:
        super().__init__()
        if peak < 0:
            raise ValueError(f"`peak` must not be negative. Received: peak={peak}")
        if total_steps < 1:
            raise ValueError(
                f"`total_steps` must be at least 1. Received: total_steps={total_steps}"
            )
        if not 0 <= warmup_steps <= total_steps:
            raise ValueError(
                f"`warmup_steps` must be in [0, total_steps={total_steps}]. "
                f"Received: warmup_steps={warmup_steps}"
            )
        self.peak = peak
        self.total_steps = total_steps
        self.warmup_steps = warmup_steps

    def __call__(self, step: Any) -> Any:
        """The rate at a step, a float32 scalar.

        Args:
            step: scalar, the number of steps that are finished.
        """
        step = ops.cast(step, "float32")
        falling = (self.total_steps - step) / max(1, self.total_steps - self.warmup_steps)
        rising = step / max(1, self.warmup_steps)
        fraction = ops.where(step < self.warmup_steps, rising, ops.maximum(falling, 0.0))
        return self.peak * fraction

    def get_config(self) -> dict[str, Any]:
        return {
            "peak": self.peak,
            "total_steps": self.total_steps,
            "warmup_steps": self.warmup_steps,
        }

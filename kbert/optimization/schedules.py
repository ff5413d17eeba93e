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
        warmup_steps: steps of the warmup, at most `total_steps`.
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
        self.peak, self.total_steps, self.warmup_steps = peak, total_steps, warmup_steps

    def __call__(self, step: Any) -> Any:
        """Returns the rate after a number of finished steps, a float32 scalar."""
        step = ops.cast(step, "float32")
        falling = (self.total_steps - step) / max(1, self.total_steps - self.warmup_steps)
        rising = step / max(1, self.warmup_steps)
        fraction = ops.where(step < self.warmup_steps, rising, ops.maximum(falling, 0.0))
        return self.peak * fraction

    def get_config(self) -> dict[str, Any]:
        return {key: getattr(self, key) for key in ("peak", "total_steps", "warmup_steps")}


@keras.saving.register_keras_serializable("kbert")
class InverseSquareRootDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Rises linearly to the peak, then falls with the inverse square root of the step.

    Update number n, counted from 1, has the rate D^-0.5 min(n^-0.5, n warmup^-1.5): the peak
    (D warmup)^-0.5 is the rate of update number `warmup_steps`. In Keras' count of finished steps,
    n = step + 1; the first update is not lost to a rate of 0.

    It falls slowly and never reaches 0. With a cool-down in the last k steps of `total_steps`, the
    rate of update n is multiplied by min(1, (total_steps + 1 - n) / k): down to nearly 0.

    Source: Vaswani et al. 2017, section 5.3, equation 3; for the cool-down Zhai et al. 2022,
    Scaling vision transformers.

    Args:
        warmup_steps: updates of the warmup, the one with the peak included.
        hidden_dim: D, width of the model, from which the peak follows.
        peak: the highest learning rate, instead of `hidden_dim`.
        total_steps: updates of the whole training; needed for a cool-down.
        cooldown_steps: k, the last updates of these, in which the rate falls to nearly 0.
    """

    def __init__(
        self,
        warmup_steps: int,
        hidden_dim: int | None = None,
        peak: float | None = None,
        total_steps: int | None = None,
        cooldown_steps: int = 0,
    ) -> None:
        super().__init__()
        if warmup_steps < 1:
            raise ValueError(
                f"`warmup_steps` must be at least 1. Received: warmup_steps={warmup_steps}"
            )
        if (hidden_dim is None) == (peak is None):
            raise ValueError(
                "Exactly one of `hidden_dim` and `peak` must be given. "
                f"Received: hidden_dim={hidden_dim}, peak={peak}"
            )
        if hidden_dim is not None and hidden_dim < 1:
            raise ValueError(f"`hidden_dim` must be at least 1. Received: hidden_dim={hidden_dim}")
        if peak is not None and peak < 0:
            raise ValueError(f"`peak` must not be negative. Received: peak={peak}")
        if not 0 <= cooldown_steps <= (total_steps or 0):
            raise ValueError(
                "`cooldown_steps` must be between 0 and `total_steps`. Received: "
                f"cooldown_steps={cooldown_steps}, total_steps={total_steps}"
            )
        self.warmup_steps, self.hidden_dim, self.peak = warmup_steps, hidden_dim, peak
        self.total_steps, self.cooldown_steps = total_steps, cooldown_steps

    def __call__(self, step: Any) -> Any:
        """Returns the rate after a number of finished steps, a float32 scalar."""
        peak = self.peak
        if self.hidden_dim is not None:
            peak = (self.hidden_dim * self.warmup_steps) ** -0.5
        step = ops.cast(step, "float32")
        share = (step + 1.0) / self.warmup_steps
        rate = peak * ops.minimum(share, ops.rsqrt(share))
        if self.total_steps is None or not self.cooldown_steps:
            return rate
        return rate * ops.clip((self.total_steps - step) / self.cooldown_steps, 0.0, 1.0)

    def get_config(self) -> dict[str, Any]:
        names = ("warmup_steps", "hidden_dim", "peak", "total_steps", "cooldown_steps")
        return {name: getattr(self, name) for name in names}

"""Training runs whose workers Ray Train starts and connects (the extra "ray").

    train_with_ray(config, ScalingConfig(num_workers=4, use_gpu=True))

Importing this module imports ray. Sources: Ray Train, "Get Started with Distributed Training using
TensorFlow/Keras"; its `TensorflowTrainer` gives each worker TF_CONFIG, and nothing else is used.
"""

from pathlib import Path
from typing import Any

from kbert.extras import install_extra
from kbert.options.configuration import MULTI_WORKER, check_default, check_strategy
from kbert.training.config.any_config import StoredConfig, config_from_dict
from kbert.training.run import look_first, train
from kbert.training.runs.run_directory import check_output

try:
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.tensorflow import TensorflowTrainer
except ImportError as error:
    raise ImportError(
        f"Training with Ray needs it: {install_extra('ray')}. Received: {error}"
    ) from error

_MAX_FAILURES = 3


def train_with_ray(
    config: StoredConfig, scaling: ScalingConfig, run_config: RunConfig | None = None
) -> Path:
    """Trains a configuration with the strategy "multi-worker" on Ray's workers.

    When a worker dies, Ray starts all of them again, and the run goes on from its last state. All
    need one file system, and paths that mean the same everywhere. Returns the run directory.

    Args:
        config: of any task, with `save_every`; its `strategy` is set here.
        scaling: the number of workers, and the processors or GPUs of each.
        run_config: how often Ray starts again, among others; by default three times.

    Raises:
        ValueError: The configuration is wrong, cannot be resumed, or is not for several workers.
        FileNotFoundError: A file is missing.
        FileExistsError: The output exists already.
        ray.train.TrainingFailedError: The training failed more often than allowed.
    """
    placed: Any = config.with_values(strategy=MULTI_WORKER)
    check_default(placed, ("overwrite", "resume"), "with Ray: workers that start again go on")
    check_strategy(placed)
    look_first(placed)
    # Not by look_first, as each worker calls it: another one may have begun the run by then.
    check_output(placed.output or "", overwrite=False, resume=True)
    again = RunConfig(failure_config=FailureConfig(max_failures=_MAX_FAILURES))
    TensorflowTrainer(
        _train_values,
        train_loop_config=placed.to_dict(),
        scaling_config=scaling,
        run_config=run_config or again,
    ).fit()
    return Path(placed.output or "")


def _train_values(values: dict[str, Any]) -> None:
    """Runs in each worker, after Ray has set its TF_CONFIG."""
    train(config_from_dict(values))

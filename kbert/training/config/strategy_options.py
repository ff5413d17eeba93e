"""What a configuration says about where a run trains."""

from typing import Any

from kbert.training.config.configuration import wrong
from kbert.training.config.option_kinds import choice, option, whole

ONE, MIRRORED, MULTI_WORKER, TPU = "one", "mirrored", "multi-worker", "tpu"
STRATEGIES = (ONE, MIRRORED, MULTI_WORKER, TPU)


def strategy_option(panel: str) -> Any:
    """The field `strategy` of a configuration.

    Args:
        panel: The heading that help texts list it under.
    """
    return option(
        ONE,
        choice(*STRATEGIES),
        panel,
        "one device, mirrored (several of this machine), multi-worker (processes that TF_CONFIG "
        "names) or tpu.",
    )


def replicas_option(panel: str) -> Any:
    """The field `replicas` of a configuration.

    Args:
        panel: The heading that help texts list it under.
    """
    return option(
        None,
        whole(1, optional=True),
        panel,
        "Of mirrored: on how many GPUs, or parts of the CPU where there is none; by default all.",
    )


def execution_option(panel: str) -> Any:
    """The field `steps_per_execution` of a configuration.

    Args:
        panel: The heading that help texts list it under.
    """
    return option(
        1,
        whole(1),
        panel,
        "Steps of one call of the device, which does them in one graph; between calls a run looks "
        "at its loss, saves, and stops.",
    )


def check_strategy(config: Any) -> None:
    """Checks what a configuration says about where it trains against the rest of it.

    Args:
        config: The configuration of a run.

    Raises:
        ValueError: Two values contradict each other.
    """
    if config.replicas is not None and config.strategy != MIRRORED:
        raise wrong("replicas", f"left out with strategy={config.strategy!r}", config.replicas)
    if config.strategy != MULTI_WORKER:
        return
    if getattr(config, "seeds", 1) != 1:
        raise wrong("seeds", f"1 with strategy={MULTI_WORKER!r}", config.seeds)
    if getattr(config, "grid", False) is not False:
        raise wrong("grid", f"false with strategy={MULTI_WORKER!r}", config.grid)
    if getattr(config, "save_every", 1) is None:
        # By the clock each worker would save at another step, and wait there for the others.
        raise wrong("save_every", f"given with strategy={MULTI_WORKER!r}", None)

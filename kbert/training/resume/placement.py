"""Runs under the distribution strategy of their configuration."""

import atexit
import contextlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, TypeVar

import tensorflow as tf

from kbert.options.configuration import Configuration
from kbert.options.shared import MULTI_WORKER, ONE, check_strategy
from kbert.pipelines.replication.row_splitting import check_divisible
from kbert.training.distributed.collectives import barrier
from kbert.training.distributed.locked_temp_dir import WORKER, own_folder, remove_left
from kbert.training.distributed.strategies import strategy
from kbert.training.distributed.tf_config import Cluster, read_cluster
from kbert.training.distributed.worker_watch import GRACE, LostWorker, end_within, lost, watched
from kbert.training.resume.resumed_run import goes_on
from kbert.training.runs.run_directory import stopped_run

Config = TypeVar("Config", bound=Configuration)
# Errors that TensorFlow raises in a worker when another one is gone.
_LOST = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
)


@contextmanager
def in_its_place(config: Config) -> Iterator[Config]:
    """Enters the scope of a run's strategy: models that are created inside train with it.

    Of several workers only worker 0, the chief, writes the run directory. The others write to a
    temporary folder, which is removed with their process (or, if that is killed, when the next
    worker starts). They resume a stopped run from a copy of the chief's folder, so all need the
    same file system.

    Args:
        config: The run's configuration, with `strategy`, `replicas` and `output`.

    Yields:
        The configuration of this process.

    Raises:
        ValueError: The strategy cannot be created, see
            `kbert.training.distributed.strategies.strategy`, or `batch_size` is not divisible.
        LostWorker: Another worker is gone.
    """
    values: Any = config
    check_strategy(values)
    if values.strategy == ONE:
        yield config
    elif values.strategy != MULTI_WORKER:
        made = _made(values.strategy, values.replicas)
        _check_batch(config, made)
        with made.scope():
            yield config
    else:
        with _with_others(config, read_cluster()) as own:
            yield own


def placed(run: Callable[..., Path]) -> Callable[..., Path]:
    """Wraps a function that makes a run directory of a configuration in `in_its_place`.

    Args:
        run: The function; its first argument is the configuration.
    """

    @wraps(run)
    def wrapped(config: Any, *args: Any, **kwargs: Any) -> Path:
        with in_its_place(config) as own:
            return run(own, *args, **kwargs)

    return wrapped


def own_share(config: Any) -> dict[str, int]:
    """Returns this worker's share of a stream of examples.

    Args:
        config: The run's configuration, with `strategy` and `batch_size`.

    Returns:
        The arguments `batch_size`, `worker` and `workers` of
        `kbert.data.pretraining.stream.ExampleStream`.
    """
    if config.strategy != MULTI_WORKER:
        return {"batch_size": config.batch_size}
    cluster = read_cluster()
    workers = len(cluster.addresses)
    share = {"worker": cluster.worker, "workers": workers}
    return {"batch_size": config.batch_size // workers, **share}


@contextmanager
def _with_others(config: Config, cluster: Cluster) -> Iterator[Config]:
    with watched(cluster):
        try:
            made = _made(MULTI_WORKER, None)
            _check_batch(config, made)
            with made.scope():
                yield config if cluster.worker == 0 else _elsewhere(config)
                barrier()
        except _LOST as error:
            end_within(GRACE)
            reason = " ".join(str(error).split())
            raise LostWorker(lost(cluster, [], f"no answer ({reason[-300:]})")) from error


@lru_cache(maxsize=None)
def _made(name: str, replicas: int | None) -> tf.distribute.Strategy:
    """Caches one strategy per process: TensorFlow creates no second multi-worker strategy."""
    return strategy(name, replicas)


def _check_batch(config: Any, made: tf.distribute.Strategy) -> None:
    if getattr(config, "batch_tokens", None) is None:
        check_divisible("batch_size", config.batch_size, made.num_replicas_in_sync)


def _elsewhere(config: Config) -> Config:
    """Returns the configuration of a worker other than the chief, with a temporary output."""
    remove_left(WORKER)
    own = contextlib.ExitStack()
    folder = own.enter_context(own_folder(WORKER))
    atexit.register(own.close)
    output = config.to_dict()["output"] or "run"
    kept = stopped_run(output) if goes_on(config) else None
    if kept is not None:
        shutil.copytree(kept, folder / kept.name)
    return config.with_values(output=str(folder / Path(output).name))

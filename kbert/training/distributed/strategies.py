"""Distribution strategies (a device, several, several processes, a TPU), and runs under them."""

import atexit
import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import keras
import tensorflow as tf

from kbert.hints import nearest
from kbert.optimization.steps import WholeBatches
from kbert.options import configuration as options
from kbert.pipelines.replication import on_tensorflow
from kbert.pipelines.row_splitting import check_divisible
from kbert.training.distributed import worker_watch
from kbert.training.distributed.collectives import barrier
from kbert.training.distributed.locked_temp_dir import WORKER, own_folder, remove_left
from kbert.training.distributed.tf_config import (
    VARIABLE,
    Cluster,
    read_cluster,
    worker_config,
)
from kbert.training.runs.run_directory import stopped_run
from kbert.training.runs.stopped_runs import resumes

Config = TypeVar("Config", bound=options.Configuration)
# Errors that TensorFlow raises in a worker when another one is gone.
_LOST = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
)


def strategy(
    name: str = options.ONE, replicas: int | None = None, tpu: str | None = None
) -> tf.distribute.Strategy | WholeBatches:
    """Creates a strategy; a model that is created within its `scope()` trains with it.

    "one" is TensorFlow's default: a single device. "mirrored" trains copies of the model on the
    GPUs of this machine, or on parts of its CPU where it has none. "multi-worker" trains with other
    processes, listed in the variable TF_CONFIG or started by Slurm's srun or by a JobSet, and waits
    for them; it must be created before any other use of TensorFlow. "tpu" trains on all cores of
    a TPU.

    With each of them losses and gradients are those of the whole batch on one device; see
    `kbert.optimization.losses`.

    With Keras on JAX "mirrored" is a `keras.distribution.DataParallel` over the devices that JAX
    finds; `fit` must be called in its scope, too. The others but "one" are TensorFlow's alone.

    Args:
        name: "one", "mirrored", "multi-worker" or "tpu".
        replicas: For "mirrored": number of replicas; by default one for each GPU, or for each
            logical device of the CPU, and with JAX one for each of its devices.
        tpu: For "tpu": its name or address; by default the one of this machine.

    Raises:
        ValueError: The name is unknown, TF_CONFIG is invalid, there are fewer devices than
            replicas, or there is no TPU.
        LostWorker: Another worker did not appear.
        OSError: The port of this worker is in use.
    """
    if name not in options.STRATEGIES:
        raise ValueError(
            f"`strategy` must be one of {', '.join(options.STRATEGIES)}. Received: "
            f"strategy={name!r}.{nearest(str(name), list(options.STRATEGIES))}"
        )
    if replicas is not None and name != options.MIRRORED:
        raise ValueError(
            f"`replicas` must be left out with strategy={name!r}. Received: replicas={replicas}"
        )
    if not on_tensorflow():
        return _on_jax(name, replicas)
    makers: dict[str, Callable[[], tf.distribute.Strategy]] = {
        options.ONE: tf.distribute.get_strategy,
        options.MIRRORED: lambda: tf.distribute.MirroredStrategy(_devices(replicas)),
        options.MULTI_WORKER: _multi_worker,
        options.TPU: lambda: _tpu(tpu),
    }
    return makers[name]()


def _on_jax(name: str, replicas: int | None) -> tf.distribute.Strategy | WholeBatches:
    """Returns the devices of some number of replicas, whose `scope()` is used as a strategy's."""
    if name == options.ONE:
        return tf.distribute.get_strategy()
    if name != options.MIRRORED:
        raise ValueError(
            "`strategy` must be one or mirrored, for all devices of this machine, with Keras on "
            f"JAX. Received: strategy={name!r}"
        )
    _check_count(replicas)
    found = keras.distribution.list_devices()
    if replicas is not None and replicas > len(found):
        raise ValueError(
            f"`replicas` must be at most {len(found)}, the devices that JAX finds; a CPU is as "
            "many as XLA_FLAGS=--xla_force_host_platform_device_count=N says. Received: "
            f"replicas={replicas}"
        )
    return WholeBatches(devices=found[:replicas])


def _check_count(replicas: int | None) -> None:
    if replicas is not None and (isinstance(replicas, bool) or not isinstance(replicas, int)):
        raise ValueError(f"`replicas` must be a whole number. Received: replicas={replicas!r}")
    if replicas is not None and replicas < 1:
        raise ValueError(f"`replicas` must be at least 1. Received: replicas={replicas}")


def _devices(replicas: int | None) -> list[str]:
    """Returns the names of the devices of some number of replicas."""
    _check_count(replicas)
    kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    if kind == "CPU" and replicas is not None:
        _divide_processor(replicas)
    found = [device.name for device in tf.config.list_logical_devices(kind)]
    if replicas is not None and replicas > len(found):
        raise ValueError(
            f"`replicas` must be at most the {len(found)} {kind}s of this machine. Received: "
            f"replicas={replicas}"
        )
    return found[:replicas]


def _divide_processor(replicas: int) -> None:
    """Splits the CPU into logical devices, unless there are enough of them."""
    processor = tf.config.list_physical_devices("CPU")[0]
    parts = tf.config.get_logical_device_configuration(processor) or [None]
    if len(parts) >= replicas:
        return
    part = tf.config.LogicalDeviceConfiguration()
    try:
        tf.config.set_logical_device_configuration(processor, [part] * replicas)
    except RuntimeError as error:
        raise ValueError(
            "`replicas` on a CPU must be asked for before TensorFlow is used in this process: "
            f"then it cannot be divided any more. Received: replicas={replicas}, with "
            f"{len(parts)} CPU devices"
        ) from error


def _multi_worker() -> tf.distribute.Strategy:
    cluster = read_cluster()
    if not os.environ.get(VARIABLE):  # a scheduler's variables, which TensorFlow does not read
        os.environ[VARIABLE] = worker_config(cluster.addresses, cluster.worker)
    worker_watch.wait_for_others(cluster)
    try:
        with worker_watch.ended_without_others(cluster):
            return tf.distribute.MultiWorkerMirroredStrategy()
    except tf.errors.UnknownError as error:  # all that TensorFlow says of a port that is taken
        raise worker_watch.taken_port(cluster, error) from error
    except RuntimeError as error:
        raise ValueError(
            "strategy='multi-worker' must be made before TensorFlow is used in this process. "
            f"Received: {error}"
        ) from error


def _tpu(address: str | None) -> tf.distribute.Strategy:
    try:
        resolver: Any = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=address or "local")
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        return tf.distribute.TPUStrategy(resolver)
    except (ValueError, tf.errors.OpError, RuntimeError) as error:
        raise ValueError(
            "strategy='tpu' must find a TPU: run it on a TPU's machine, with the package "
            "tensorflow-tpu in the place of tensorflow (both together do not work). Received: "
            f"{' '.join(str(error).split())[:300]}"
        ) from error


@contextmanager
def in_its_place(config: Config) -> Iterator[Config]:
    """Enters the scope of a run's strategy: models that are created inside train with it.

    Of several workers only worker 0, the chief, writes the run directory. The others write to a
    temporary folder, which is removed with their process (or, if that is killed, when the next
    worker starts). They resume a stopped run from a copy of the chief's folder, so all need the
    same file system. Yields the configuration of this process.

    Raises:
        ValueError: `strategy` cannot create the strategy, or `batch_size` is not divisible.
        LostWorker: Another worker is gone.
    """
    values: Any = config
    options.check_strategy(values)
    if values.strategy == options.ONE:
        yield config
    elif values.strategy != options.MULTI_WORKER or not on_tensorflow():
        made = _made(values.strategy, values.replicas)
        _check_batch(config, made)
        with made.scope():
            yield config
    else:
        with _with_others(config, read_cluster()) as own:
            yield own


@contextmanager
def _with_others(config: Config, cluster: Cluster) -> Iterator[Config]:
    with worker_watch.watched(cluster):
        try:
            made = _made(options.MULTI_WORKER, None)
            _check_batch(config, made)
            with made.scope():
                yield config if cluster.worker == 0 else _elsewhere(config)
                barrier()
        except _LOST as error:
            worker_watch.end_within(worker_watch.GRACE)
            reason = f"no answer ({' '.join(str(error).split())[-300:]})"
            raise worker_watch.LostWorker(worker_watch.lost(cluster, [], reason)) from error


@lru_cache(maxsize=None)
def _made(name: str, replicas: int | None) -> tf.distribute.Strategy | WholeBatches:
    """Caches one strategy per process: TensorFlow creates no second multi-worker strategy."""
    return strategy(name, replicas)


def _check_batch(config: Any, made: tf.distribute.Strategy | WholeBatches) -> None:
    if getattr(config, "batch_tokens", None) is None and not isinstance(made, WholeBatches):
        check_divisible("batch_size", config.batch_size, made.num_replicas_in_sync)


def _elsewhere(config: Config) -> Config:
    """Returns the configuration of a worker other than the chief, with a temporary output."""
    remove_left(WORKER)
    own = contextlib.ExitStack()
    folder = own.enter_context(own_folder(WORKER))
    atexit.register(own.close)
    output = config.to_dict()["output"] or "run"
    kept = stopped_run(output) if resumes(config) else None
    if kept is not None:
        shutil.copytree(kept, folder / kept.name)
    return config.with_values(output=str(folder / Path(output).name))

"""Distribution strategies: one device, several of this machine, several processes, or a TPU."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from kbert.data.tables.table import nearest
from kbert.options.shared import MIRRORED, MULTI_WORKER, ONE, STRATEGIES, TPU
from kbert.training.distributed.tf_config import read_cluster
from kbert.training.distributed.worker_rendezvous import (
    ended_without_others,
    taken_port,
    wait_for_others,
)


def strategy(
    name: str = ONE, replicas: int | None = None, tpu: str | None = None
) -> tf.distribute.Strategy:
    """Creates a strategy; a model that is created within its `scope()` trains with it.

    "one" is TensorFlow's default: a single device. "mirrored" trains copies of the model on the
    GPUs of this machine, or on parts of its CPU where it has none. "multi-worker" trains with other
    processes, listed in the variable TF_CONFIG, and waits for them; it must be created before any
    other use of TensorFlow. "tpu" trains on all cores of a TPU.

    With each of them losses and gradients are those of the whole batch on one device; see
    `kbert.optimization.losses`.

    Args:
        name: "one", "mirrored", "multi-worker" or "tpu".
        replicas: For "mirrored": number of replicas; by default one for each GPU, or for each
            logical device of the CPU.
        tpu: For "tpu": its name or address; by default the one of this machine.

    Raises:
        ValueError: The name is unknown, TF_CONFIG is invalid, there are fewer devices than
            replicas, or there is no TPU.
        LostWorker: Another worker did not appear.
        OSError: The port of this worker is in use.
    """
    if name not in STRATEGIES:
        raise ValueError(
            f"`strategy` must be one of {', '.join(STRATEGIES)}. Received: strategy={name!r}."
            f"{nearest(str(name), list(STRATEGIES))}"
        )
    if replicas is not None and name != MIRRORED:
        raise ValueError(
            f"`replicas` must be left out with strategy={name!r}. Received: replicas={replicas}"
        )
    makers: dict[str, Callable[[], tf.distribute.Strategy]] = {
        ONE: tf.distribute.get_strategy,
        MIRRORED: lambda: tf.distribute.MirroredStrategy(_devices(replicas)),
        MULTI_WORKER: _multi_worker,
        TPU: lambda: _tpu(tpu),
    }
    return makers[name]()


def _devices(replicas: int | None) -> list[str]:
    """Returns the names of the devices of some number of replicas."""
    if replicas is not None and (isinstance(replicas, bool) or not isinstance(replicas, int)):
        raise ValueError(f"`replicas` must be a whole number. Received: replicas={replicas!r}")
    if replicas is not None and replicas < 1:
        raise ValueError(f"`replicas` must be at least 1. Received: replicas={replicas}")
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
    wait_for_others(cluster)
    try:
        with ended_without_others(cluster):
            return tf.distribute.MultiWorkerMirroredStrategy()
    except tf.errors.UnknownError as error:  # all that TensorFlow says of a port that is taken
        raise taken_port(cluster, error) from error
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

"""Reader of TF_CONFIG, the environment variable that lists the workers of a cluster.

Its format is that of TensorFlow ("Multi-worker training with Keras"): JSON with "cluster", the
addresses of all workers, and "task", which of them this process is.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kbert.training.distributed.schedulers import scheduled_workers

VARIABLE = "TF_CONFIG"
_FORM = (
    f'{VARIABLE} must be JSON such as {{"cluster": {{"worker": ["10.0.0.1:2222", '
    '"10.0.0.2:2222"]}, "task": {"type": "worker", "index": 0}}'
)


@dataclass(frozen=True)
class Cluster:
    """The workers of a multi-worker training: "host:port" of each, the chief first.

    `worker` is the index of this process among them, from 0.
    """

    addresses: tuple[str, ...]
    worker: int


def read_cluster(environment: Mapping[str, str] = os.environ) -> Cluster:
    """Reads TF_CONFIG, or else what Slurm or a JobSet tell; a ValueError says what is wrong."""
    text = environment.get(VARIABLE)
    if not text:
        if (scheduled := scheduled_workers(environment)) is not None:
            return Cluster(*scheduled)
        raise ValueError(
            f"{_FORM}, in the environment of each worker, or the workers must be started by srun "
            "or by a JobSet. Received: none"
        )
    try:
        values = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{_FORM}. Received: {text!r} ({error})") from error
    jobs, task = _part(values, "cluster", text), _part(values, "task", text)
    unknown = sorted(set(jobs) - {"chief", "worker"})
    if unknown:
        raise ValueError(
            f'The jobs of {VARIABLE} must be "worker" and perhaps "chief". Received: {unknown}'
        )
    addresses: list[str] = []
    first: dict[str, int] = {}
    jobs = {job: _addresses(job, given) for job, given in jobs.items()}
    for job in ("chief", "worker"):
        first[job] = len(addresses)
        addresses += jobs.get(job, [])
    if len(jobs.get("chief", [])) > 1:
        raise ValueError(f"{VARIABLE} must have one chief at most. Received: {jobs['chief']}")
    if not addresses or len(set(addresses)) < len(addresses):
        raise ValueError(
            f"The workers of {VARIABLE} must have different addresses, and be one at least. "
            f"Received: {addresses}"
        )
    kind, index = task.get("type"), task.get("index")
    known = jobs[kind] if isinstance(kind, str) and kind in jobs else []
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(known):
        raise ValueError(
            f"The task of {VARIABLE} must be one of its cluster: a type of {sorted(jobs)} and an "
            f"index below the number of its addresses. Received: {task}"
        )
    return Cluster(tuple(addresses), first[str(kind)] + index)


def worker_config(addresses: tuple[str, ...], worker: int) -> str:
    """Returns the TF_CONFIG of one worker."""
    return json.dumps(
        {"cluster": {"worker": list(addresses)}, "task": {"type": "worker", "index": worker}}
    )


def _part(values: Any, key: str, text: str) -> dict[str, Any]:
    part = values.get(key) if isinstance(values, dict) else None
    if not isinstance(part, dict):
        raise ValueError(f"{_FORM}. Received: {text!r}")
    return part


def _addresses(job: str, given: Any) -> list[str]:
    if not isinstance(given, list):
        raise ValueError(
            f"The addresses of {VARIABLE} must be a list, also of one. Received: {given!r} as "
            f"{job}"
        )
    for address in given:
        host, _, port = address.rpartition(":") if isinstance(address, str) else ("", "", "")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ValueError(
                f"The addresses of {VARIABLE} must be of the form host:port. Received: "
                f"{address!r} as a {job}"
            )
    return given

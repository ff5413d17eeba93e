"""Addresses of the workers of a run that Slurm or a Kubernetes JobSet started.

Sources: the variables that `srun` sets in each task, and Slurm's notation of host lists (man pages
srun and scontrol); host names of pods and annotations in JobSet's documentation.
"""

import re
from collections.abc import Mapping
from itertools import chain

# What srun sets, and no batch script has.
_SLURM = ("SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE", "SLURM_PROCID", "SLURM_JOB_ID")
# What the pods of a JobSet get from its annotations, see docs/distribution.md.
_JOBSET = ("JOBSET_NAME", "REPLICATED_JOB_NAME", "REPLICATED_JOB_REPLICAS", "JOB_INDEX")
# Pods have addresses of their own. Jobs of Slurm share those of their nodes, so each job has its
# ports, below those that systems give to connections.
_POD_PORT = 2222
_FIRST_PORT, _PORTS = 12000, 20000


def scheduled_workers(environment: Mapping[str, str]) -> tuple[tuple[str, ...], int] | None:
    """Returns "host:port" of all workers and the index of this one, or None without a scheduler.

    Raises:
        ValueError: A variable of the scheduler has another form, or the tasks of `srun` are not
            distributed in blocks.
    """
    if all(environment.get(name) for name in _SLURM):
        return _of_slurm(environment)
    if all(environment.get(name) for name in _JOBSET):
        return _of_jobset(environment)
    return None


def _of_slurm(environment: Mapping[str, str]) -> tuple[tuple[str, ...], int]:
    hosts = _hosts(environment["SLURM_STEP_NODELIST"])
    tasks = _tasks(environment["SLURM_STEP_TASKS_PER_NODE"])
    if len(hosts) != len(tasks):
        raise ValueError(
            "SLURM_STEP_TASKS_PER_NODE must have a number for each node of SLURM_STEP_NODELIST. "
            f"Received: {environment['SLURM_STEP_TASKS_PER_NODE']!r} for {len(hosts)} nodes"
        )
    first = _FIRST_PORT + _number(environment, "SLURM_JOB_ID") % _PORTS
    places = [(host, first + i) for host, count in zip(hosts, tasks) for i in range(count)]
    worker = _index(environment, "SLURM_PROCID", len(places))
    own = environment.get("SLURMD_NODENAME", places[worker][0])
    if own != places[worker][0]:
        raise ValueError(
            "srun must give each node a block of tasks (--distribution=block). Received: task "
            f"{worker} on {own}, which is not {places[worker][0]}"
        )
    return tuple(f"{host}:{port}" for host, port in places), worker


def _of_jobset(environment: Mapping[str, str]) -> tuple[tuple[str, ...], int]:
    """Returns the first pod of each job of a replicated job, by their stable names."""
    name, job = environment["JOBSET_NAME"], environment["REPLICATED_JOB_NAME"]
    count = _number(environment, "REPLICATED_JOB_REPLICAS")
    worker = _index(environment, "JOB_INDEX", count)
    return tuple(f"{name}-{job}-{i}-0.{name}:{_POD_PORT}" for i in range(count)), worker


def _hosts(text: str) -> list[str]:
    """Expands a host list: "n[08-10,12],login" is n08, n09, n10, n12, login."""
    parts = re.findall(r"(?:[^,\[\]]|\[[\d,-]+\])+", text)
    if ",".join(parts) != text:
        raise ValueError(
            "SLURM_STEP_NODELIST must be a list of hosts such as node[01-04,07]. Received: "
            f"{text!r}"
        )
    return list(chain.from_iterable(map(_expanded, parts)))


def _expanded(part: str) -> list[str]:
    before, bracket, after = part.partition("[")
    if not bracket:
        return [part]
    ranges, _, rest = after.partition("]")
    numbers = []
    for one in ranges.split(","):
        low, _, high = one.partition("-")
        last = int(high or low)
        numbers += [str(number).zfill(len(low)) for number in range(int(low), last + 1)]
    return [f"{before}{number}{end}" for number in numbers for end in _expanded(rest)]


def _tasks(text: str) -> list[int]:
    """Expands the numbers of tasks: "2(x3),1" is 2, 2, 2, 1."""
    if not re.fullmatch(r"\d+(\(x\d+\))?(,\d+(\(x\d+\))?)*", text):
        raise ValueError(
            "SLURM_STEP_TASKS_PER_NODE must be numbers such as 2(x3),1. Received: " f"{text!r}"
        )
    found = re.findall(r"(\d+)(?:\(x(\d+)\))?", text)
    return [int(count) for count, times in found for _ in range(int(times or 1))]


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment[name]
    if not text.isdecimal():
        raise ValueError(f"{name} must be a whole number. Received: {text!r}")
    return int(text)


def _index(environment: Mapping[str, str], name: str, count: int) -> int:
    index = _number(environment, name)
    if index >= count:
        raise ValueError(
            f"{name} must be below the number of workers, {count}. Received: {index}"
        )
    return index

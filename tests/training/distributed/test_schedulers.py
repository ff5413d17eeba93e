"""Addresses of workers from the variables of Slurm and of a JobSet."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tensorflow.python.distribute.cluster_resolver import slurm_cluster_resolver as tensorflows

from kbert.training.distributed import schedulers
from kbert.training.distributed.schedulers import scheduled_workers
from kbert.training.distributed.tf_config import Cluster, read_cluster

# As srun 22.05 sets them in the last of three tasks on two nodes.
SLURM = {
    "SLURM_STEP_NODELIST": "node[08-09]",
    "SLURM_STEP_TASKS_PER_NODE": "2,1",
    "SLURM_PROCID": "2",
    "SLURM_JOB_ID": "40007",
    "SLURMD_NODENAME": "node09",
}
JOBSET = {
    "JOBSET_NAME": "topics",
    "REPLICATED_JOB_NAME": "worker",
    "REPLICATED_JOB_REPLICAS": "2",
    "JOB_INDEX": "1",
}


def test_tasks_of_srun_have_the_ports_of_their_job():
    addresses = ("node08:12007", "node08:12008", "node09:12007")
    assert scheduled_workers(SLURM) == (addresses, 2)
    assert read_cluster(SLURM) == Cluster(addresses, 2)


def test_jobs_of_a_jobset_have_stable_names():
    addresses = ("topics-worker-0-0.topics:2222", "topics-worker-1-0.topics:2222")
    assert scheduled_workers(JOBSET) == (addresses, 1)


def test_without_a_scheduler_or_within_a_batch_script_there_is_none():
    assert scheduled_workers({}) is None
    script = {"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_NODELIST": "a", "SLURM_NTASKS": "2"}
    assert scheduled_workers(script) is None


def test_tf_config_comes_first():
    own = '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}}'
    assert read_cluster({**SLURM, "TF_CONFIG": own}) == Cluster(("a:1",), 0)


@pytest.mark.parametrize(
    "text, hosts",
    [
        ("one", ["one"]),
        ("n[1-2,12],login", ["n1", "n2", "n12", "login"]),
        ("n[099-101]", ["n099", "n100", "n101"]),
        ("r[1-2]n[3-4]", ["r1n3", "r1n4", "r2n3", "r2n4"]),
        ("gpu-[7].site,x", ["gpu-7.site", "x"]),
    ],
)
def test_lists_of_hosts(text, hosts):
    assert schedulers._hosts(text) == hosts


NAMES = st.from_regex(r"[a-z]{1,3}[a-z-]?", fullmatch=True)
RANGES = st.lists(
    st.tuples(st.integers(0, 120), st.integers(0, 5)).map(lambda x: f"{x[0]}-{x[0] + x[1]}"),
    min_size=1,
    max_size=3,
)


@given(st.lists(st.tuples(NAMES, RANGES), min_size=1, max_size=3))
def test_lists_of_hosts_are_those_of_tensorflow(parts):
    text = ",".join(f"{name}[{','.join(ranges)}]" for name, ranges in parts)
    assert schedulers._hosts(text) == tensorflows.expand_hostlist(text)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4)), min_size=1, max_size=4))
def test_numbers_of_tasks_are_those_of_tensorflow(runs):
    text = ",".join(f"{count}(x{times})" if times > 1 else f"{count}" for count, times in runs)
    assert schedulers._tasks(text) == tensorflows.expand_tasks_per_node(text)


@pytest.mark.parametrize(
    "changed, told",
    [
        ({"SLURM_STEP_NODELIST": "n[1-2"}, r"such as node\[01-04,07\]. Received: 'n\[1-2'"),
        ({"SLURM_STEP_TASKS_PER_NODE": "2x2"}, r"such as 2\(x3\),1. Received: '2x2'"),
        ({"SLURM_STEP_TASKS_PER_NODE": "3"}, "Received: '3' for 2 nodes"),
        ({"SLURM_PROCID": "3"}, "SLURM_PROCID must be below the number of workers, 3. Received: 3"),
        ({"SLURM_PROCID": "-1"}, "SLURM_PROCID must be a whole number. Received: '-1'"),
        (
            {"SLURMD_NODENAME": "node08"},
            "--distribution=block.*Received: task 2 on node08, which is not node09",
        ),
    ],
)
def test_what_makes_no_sense(changed, told):
    with pytest.raises(ValueError, match=told):
        scheduled_workers({**SLURM, **changed})


@pytest.fixture(scope="module")
def blocks(in_checkout) -> dict[str, str]:
    """The code blocks of the page, by their languages."""
    page = in_checkout("docs/distribution.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^```(\w+)\n(.*?)^```", page, re.M | re.S))


def test_the_documented_jobset_sets_these_variables(blocks):
    jobset = yaml.safe_load(blocks["yaml"])
    (job,) = jobset["spec"]["replicatedJobs"]
    template = job["template"]["spec"]["template"]["spec"]
    (container,) = template["containers"]
    paths = {one["name"]: one["valueFrom"]["fieldRef"]["fieldPath"] for one in container["env"]}
    prefix = "jobset.sigs.k8s.io"
    assert paths == {
        "JOBSET_NAME": f"metadata.annotations['{prefix}/jobset-name']",
        "REPLICATED_JOB_NAME": f"metadata.annotations['{prefix}/replicatedjob-name']",
        "REPLICATED_JOB_REPLICAS": f"metadata.annotations['{prefix}/replicatedjob-replicas']",
        "JOB_INDEX": f"metadata.annotations['{prefix}/job-index']",
    }
    assert template["restartPolicy"] == "Never"  # what a podFailurePolicy asks for


def test_the_documented_batch_script_asks_to_be_run_again_for_75_alone(blocks, tmp_path: Path):
    for name, line in (("srun", 'exit "$CODE"'), ("scontrol", 'echo "$@"')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    variables = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_ID": "7"}
    for code, told in ((0, ""), (2, ""), (75, "requeue 7\n")):
        done = subprocess.run(
            ["bash", "-c", blocks["bash"]],
            env={**variables, "CODE": str(code)},
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stdout) == (0 if told else code, told)

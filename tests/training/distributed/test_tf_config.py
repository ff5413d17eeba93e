"""TF_CONFIG: what is read of it, and what makes no sense."""

import json

import pytest

from kbert.training.distributed.tf_config import Cluster, read_cluster, worker_config

TWO = ("10.0.0.1:2222", "10.0.0.2:2222")


def read(cluster, task):
    return read_cluster({"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})})


def test_what_is_written_is_read():
    assert read_cluster({"TF_CONFIG": worker_config(TWO, 1)}) == Cluster(TWO, 1)


def test_a_chief_comes_first():
    cluster = {"worker": ["a:1", "b:2"], "chief": ["c:3"]}
    assert read(cluster, {"type": "chief", "index": 0}) == Cluster(("c:3", "a:1", "b:2"), 0)
    assert read(cluster, {"type": "worker", "index": 1}) == Cluster(("c:3", "a:1", "b:2"), 2)


@pytest.mark.parametrize(
    "text, told",
    [
        ("", "must be JSON such as .* of each worker, or .* started by srun .* Received: none"),
        ("{", "must be JSON such as .* Received: '{'"),
        ("[]", r"must be JSON such as .* Received: '\[\]'"),
        ('{"cluster": {"worker": ["a:1"]}}', "must be JSON such as"),
    ],
)
def test_what_is_no_configuration(text, told):
    with pytest.raises(ValueError, match=told):
        read_cluster({"TF_CONFIG": text})


@pytest.mark.parametrize(
    "cluster, index, told",
    [
        ({"worker": ["a:1"], "ps": ["b:2"]}, 0, r'"worker" and perhaps "chief". Received: \[.ps'),
        ({"worker": ["a:1"], "chief": ["b:2", "c:3"]}, 0, "one chief at most"),
        ({"worker": ["a:1", "a:1"]}, 0, "different addresses"),
        ({"worker": []}, 0, "one at least"),
        ({"worker": ["a"]}, 0, "of the form host:port. Received: 'a' as a worker"),
        ({"worker": ["a:70000"]}, 0, "host:port"),
        ({"worker": [7]}, 0, "host:port. Received: 7"),
        ({"worker": "a:1"}, 0, "must be a list, also of one. Received: 'a:1' as worker"),
        ({"worker": ["a:1"], "chief": "b:2"}, 0, "a list, also of one. Received: 'b:2' as chief"),
        ({"worker": ["a:1"]}, 1, "must be one of its cluster"),
        ({"worker": ["a:1"]}, -1, "must be one of its cluster"),
        ({"worker": ["a:1"]}, True, "must be one of its cluster"),
        ({"worker": ["a:1"]}, "0", "must be one of its cluster"),
    ],
)
def test_what_makes_no_sense(cluster, index, told):
    with pytest.raises(ValueError, match=told):
        read(cluster, {"type": "worker", "index": index})


def test_a_task_of_another_kind():
    with pytest.raises(ValueError, match="a type of .*worker.* Received: .*evaluator"):
        read({"worker": ["a:1"]}, {"type": "evaluator", "index": 0})

"""Workers that are there, and workers that are gone."""

import signal
import socket
import subprocess
import sys
import time

import pytest

from kbert.launch.launcher import free_addresses
from kbert.training.distributed.tf_config import Cluster
from kbert.training.distributed.worker_watch import LOST, answers, lost, watched

# Waits for a peer that listens at first, as a main thread waits in TensorFlow.
PROGRAM = """
import sys, time
from kbert.training.distributed.worker_watch import watched
from kbert.training.distributed.tf_config import Cluster
with watched(Cluster(("127.0.0.1:1", sys.argv[1]), 0), every=0.05, start=60, grace=0.1):
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def listening():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def address_of(server):
    return f"127.0.0.1:{server.getsockname()[1]}"


def test_who_listens_answers(listening):
    assert answers(address_of(listening))
    assert not answers(free_addresses(1)[0], 1.0)


def test_a_process_ends_when_its_peer_is_gone(listening, repository):
    command = [sys.executable, "-c", PROGRAM, address_of(listening)]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=repository, **options) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        assert process.poll() is None
        listening.close()
        _, told = process.communicate(timeout=30)
    assert process.returncode == LOST
    assert "Received: no answer from worker 1 (127.0.0.1:" in told
    assert "Worker 0 stops too; start all of them again" in told


def test_nobody_is_missed_when_all_is_over(listening):
    cluster = Cluster((address_of(listening), "127.0.0.1:1"), 1)
    with watched(cluster, every=0.01, start=60, grace=0.1):
        time.sleep(0.1)
    listening.close()
    time.sleep(0.3)  # else this process would end here


def test_the_message_names_whom_it_can():
    cluster = Cluster(("a:1", "b:2", "c:3"), 2)
    assert "no answer from worker 0 (a:1), worker 1 (b:2)" in lost(cluster, [0, 1], "no answer")
    assert "no answer from one of them" in lost(cluster, [], "no answer")


def test_a_process_ends_whatever_it_waits_for(repository):
    module = "kbert.training.distributed.worker_watch"
    program = f"from {module} import end_within; end_within(1); input()"
    with subprocess.Popen([sys.executable, "-c", program], cwd=repository, stdin=-1) as process:
        assert process.wait(30) == -signal.SIGALRM

"""Workers that wait for others at their start. (Whole teams start in test_team.py.)"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from kbert.launch.launcher import free_addresses
from kbert.training.distributed import worker_watch as waiting_start
from kbert.training.distributed.tf_config import Cluster, worker_config
from kbert.training.distributed.worker_watch import (
    LostWorker,
    answers,
    ended_without_others,
    wait_for_others,
)

# Waits in a call that lets nothing of Python run, as TensorFlow's does (PyDLL keeps the lock).
DEAF = """
import ctypes, signal, sys
from kbert.training.distributed.tf_config import read_cluster
from kbert.training.distributed.worker_watch import ended_without_others
signal.signal(signal.SIGINT, lambda number, frame: None)
with ended_without_others(read_cluster(), every=0.1, start=float(sys.argv[1])):
    print("ready", flush=True)
    ctypes.PyDLL(None).sleep(60)
"""
WAITS = """
from kbert.training.distributed.tf_config import read_cluster
from kbert.training.distributed.worker_watch import wait_for_others
print("ready", flush=True)
wait_for_others(read_cluster())
"""


@pytest.fixture
def often(monkeypatch):
    """Waiting workers ask ten times as often."""
    monkeypatch.setattr(waiting_start, "_SOON", waiting_start._SOON / 10)


@contextlib.contextmanager
def worker(program, addresses, repository, *arguments):
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=repository,
        env={**os.environ, "TF_CONFIG": worker_config(addresses, 0)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def test_workers_wait_until_all_have_come(often):
    addresses = free_addresses(3)
    come, all_came = [], threading.Barrier(4)

    def start(worker: int) -> None:
        wait_for_others(Cluster(addresses, worker), 60.0)
        come.append(worker)
        # As TensorFlow does, it goes on listening: the others may not have seen it yet.
        host, _, port = addresses[worker].rpartition(":")
        with socket.create_server((host, int(port))):
            all_came.wait(60)

    for worker in range(3):
        assert come == []
        threading.Thread(target=start, args=(worker,), daemon=True).start()
        time.sleep(0.2)
    all_came.wait(60)
    assert sorted(come) == [0, 1, 2]


def test_a_worker_that_does_not_come_is_named():
    addresses = free_addresses(2)
    with pytest.raises(LostWorker) as raised:
        wait_for_others(Cluster(addresses, 0), 0.2)
    assert str(raised.value).startswith(
        "all 2 workers must answer as long as a training goes on. Received: no answer from "
        f"worker 1 ({addresses[1]}). Worker 0 stops too; start all of them again"
    )


def test_a_waiting_worker_answers_any_number_of_questions(often):
    addresses = free_addresses(2)
    waiting = threading.Thread(target=wait_for_others, args=(Cluster(addresses, 0), 60.0))
    waiting.start()
    while not answers(addresses[0]):
        time.sleep(0.05)
    for _ in range(8):  # its queue holds 128
        assert all(answers(addresses[0], 1.0) for _ in range(50))
        time.sleep(0.1)
    host, _, port = addresses[1].rpartition(":")
    with socket.create_server((host, int(port))):
        waiting.join(30)
    assert not waiting.is_alive()


def test_a_port_that_is_taken_is_told():
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(OSError) as raised:
            wait_for_others(Cluster((address,), 0))
    assert str(raised.value).startswith(
        "TF_CONFIG must name an address for worker 0 at whose port nothing listens on this "
        f"machine. Received: {address} ("
    )


def test_sigterm_ends_a_waiting_worker(repository):
    with worker(WAITS, free_addresses(2), repository) as process:
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == -signal.SIGTERM


def test_a_process_in_which_nothing_runs_ends_without_the_others(repository):
    addresses = free_addresses(2)
    with worker(DEAF, addresses, repository, "0.5") as process:
        _, told = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGALRM
    assert f"Received: no answer from worker 1 ({addresses[1]}). Worker 0 stops too" in told


def test_a_process_in_which_nothing_runs_ends_by_ctrl_c(repository):
    with worker(DEAF, free_addresses(2), repository, "60") as process:
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == -signal.SIGINT


def test_afterwards_signals_are_as_they_were():
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        with ended_without_others(Cluster(free_addresses(2), 0), start=60.0):
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [signal.SIGTERM]


def test_one_worker_alone_waits_for_nobody():
    alone = Cluster(free_addresses(1), 0)
    wait_for_others(alone)
    with ended_without_others(alone):
        assert signal.getsignal(signal.SIGINT) is not signal.SIG_DFL

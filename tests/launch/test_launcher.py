"""Several processes, started together and again; they train in `test_placement.py`."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from kbert.launch.launcher import cores_of, free_addresses, launch_workers

# Writes down its TF_CONFIG, and ends with the code that its number and attempt have in a table.
PROGRAM = """
import json, os, sys
from pathlib import Path
from kbert.training.runs.stopped_runs import is_begun, note_begun
folder, codes = Path(sys.argv[1]), json.loads(sys.argv[2])
config = json.loads(os.environ["TF_CONFIG"])
number = config["task"]["index"]
attempt = len(list(folder.glob(f"{number}-*")))
(folder / f"{number}-{attempt}").write_text(json.dumps(config))
if is_begun():
    (folder / f"begun-{number}-{attempt}").touch()
if attempt == 1:
    note_begun()
print("stdout of", number, flush=True)
print("stderr", file=sys.stderr, flush=True)
os._exit(codes[number][attempt])
"""


def launched(folder, codes, **kwargs):
    command = [sys.executable, "-c", PROGRAM, str(folder), json.dumps(codes)]
    return launch_workers(command, 2, patience=5.0, **kwargs)


def test_workers_know_each_other(tmp_path, capfd):
    assert launched(tmp_path, [[0], [0]]) == 0
    first, second = (json.loads((tmp_path / f"{i}-0").read_text()) for i in range(2))
    assert first["cluster"] == second["cluster"] and len(set(first["cluster"]["worker"])) == 2
    assert [c["task"] for c in (first, second)] == [{"type": "worker", "index": i} for i in (0, 1)]
    out, err = capfd.readouterr()
    assert out == "stdout of 0\n"
    assert sorted(err.splitlines()) == ["[0] stderr", "[1] stderr"]


def test_all_start_again_when_one_dies(tmp_path, capfd):
    assert launched(tmp_path, [[0, 0], [9, 0]], restarts=2) == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["0-0", "0-1", "1-0", "1-1"]
    told = capfd.readouterr().err
    assert "worker 1 ended with 9" in told and "start again (1 of 2 times)" in told


def test_the_next_attempt_knows_what_was_begun(tmp_path):
    # The second attempt begins the run, as it says; so the third goes on with it.
    assert launched(tmp_path, [[0, 0, 0], [9, 9, 0]]) == 0
    assert sorted(file.name for file in tmp_path.glob("begun-*")) == ["begun-0-2", "begun-1-2"]


def test_a_launcher_that_is_ended_ends_its_workers(tmp_path):
    sleeping = "import os, sys, time; open(sys.argv[1] + str(os.getpid()), 'w'); time.sleep(99)"
    worker = [sys.executable, "-c", sleeping, f"{tmp_path}/"]
    program = f"from kbert.launch.launcher import launch_workers; launch_workers({worker!r}, 2)"
    launcher = subprocess.Popen([sys.executable, "-c", program])
    deadline = time.monotonic() + 60
    while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    workers = [int(file.name) for file in tmp_path.iterdir()]
    assert len(workers) == 2
    launcher.send_signal(signal.SIGTERM)
    assert launcher.wait(30) == 128 + signal.SIGTERM
    for worker in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)


STOPS = """
import os, signal, sys, time
from pathlib import Path
def stop(number, frame):
    time.sleep(float(sys.argv[2]))  # a state that takes its time
    os._exit(75)
signal.signal(signal.SIGTERM, stop)
Path(sys.argv[1], str(os.getpid())).touch()
while True:
    time.sleep(99)
"""
ENDED = """
import sys
from kbert.launch import launcher
launcher._ASKED = 0.1  # for those that another one's failure ends
launcher.launch_workers([sys.executable, "-c", *sys.argv[1:]], 2)
"""


@pytest.mark.parametrize("seconds, signals, code", [(1.5, 1, 75), (99, 2, 143)])
def test_workers_that_are_asked_to_stop_get_their_time(seconds, signals, code, tmp_path):
    command = [sys.executable, "-c", ENDED, STOPS, str(tmp_path), str(seconds)]
    launcher = subprocess.Popen(command)
    deadline = time.monotonic() + 60
    while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    for _ in range(signals):
        launcher.send_signal(signal.SIGTERM)
        time.sleep(0.7)
    assert launcher.wait(30) == code
    for file in tmp_path.iterdir():
        with pytest.raises(ProcessLookupError):
            os.kill(int(file.name), 0)


SAVES = """
import sys, time
from pathlib import Path
from kbert.training.runs.stopped_runs import TrainingStopped, stop_signals
try:
    with stop_signals() as stop:
        with stop.deferred():
            Path(sys.argv[1], "begun").touch()
            while stop.received is None:
                time.sleep(0.05)
            time.sleep(0.7)  # a long step, and a state that takes its time
except TrainingStopped:
    time.sleep(0.7)  # as long as the end of a process can take
    Path(sys.argv[1], "saved").touch()
    sys.exit(75)
"""
HASTY = """
import sys
from kbert.launch import launcher
launcher.launch_workers([sys.executable, "-c", *sys.argv[1:]], 1, patience=0.2)
"""


def test_a_worker_that_saves_for_longer_than_the_patience_is_not_interrupted(tmp_path):
    launcher = subprocess.Popen([sys.executable, "-c", HASTY, SAVES, str(tmp_path)])
    deadline = time.monotonic() + 60
    while not (tmp_path / "begun").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    launcher.send_signal(signal.SIGTERM)
    assert launcher.wait(30) == 75
    assert (tmp_path / "saved").exists()


DEAF = """
import json, os, signal, sys, time
from pathlib import Path
first = json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 0
if first:  # it waits for the others, and hears nothing
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
Path(sys.argv[1], str(os.getpid())).touch()
time.sleep(99)
"""
IMPATIENT = """
import sys
from kbert.launch import launcher
launcher._ASKED = 0.1
launcher.launch_workers([sys.executable, "-c", *sys.argv[1:]], 2, patience=1.0)
"""


def test_a_worker_that_waits_for_one_that_has_ended_is_ended_too(tmp_path):
    launcher = subprocess.Popen([sys.executable, "-c", IMPATIENT, DEAF, str(tmp_path)])
    deadline = time.monotonic() + 60
    while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    launcher.send_signal(signal.SIGTERM)
    assert launcher.wait(30) == 128 + signal.SIGTERM
    for file in tmp_path.iterdir():
        with pytest.raises(ProcessLookupError):
            os.kill(int(file.name), 0)


FORGETFUL = """
import os, signal, subprocess
signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs behind a shell ignores it
made = []
class LastWords(subprocess.Popen):
    # The moment when a worker is there, and the launcher does not know it yet.
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        print(self.pid, flush=True)
        {there}
subprocess.Popen = LastWords
from kbert.launch.launcher import launch_workers
launch_workers(["sleep", "60"], 2)
"""


@pytest.mark.parametrize(
    "there, code",
    [
        ("os.kill(os.getpid(), signal.SIGTERM)", 143),
        ("os.kill(os.getpid(), signal.SIGINT)", -signal.SIGINT),  # Python's own end of it
        ("made.append(self)\n        if len(made) == 2: subprocess.os.sched_setaffinity = None", 1),
    ],
)
def test_workers_that_are_just_started_are_ended_too(there, code):
    program = FORGETFUL.format(there=there)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    pids = [int(line) for line in done.stdout.split()]
    assert len(pids) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_not_without_end_and_not_for_bad_input(tmp_path):
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    assert launched(tmp_path / "a", [[0, 0], [9, 7]], restarts=1) == 7
    assert launched(tmp_path / "b", [[2], [2]], restarts=3) == 2


def test_free_addresses_are_free_and_different():
    addresses = free_addresses(3)
    assert len(set(addresses)) == 3
    for address in addresses:
        host, _, port = address.rpartition(":")
        socket.create_server((host, int(port))).close()


def test_cores_are_shared_where_there_are_enough():
    assert [cores_of(i, 2, [0, 2, 4]) for i in (0, 1)] == [{0, 4}, {2}]
    assert cores_of(1, 2, [3]) == {3}


def test_numbers_that_make_no_sense(tmp_path):
    with pytest.raises(ValueError, match="`workers` must be at least 1. Received: workers=0"):
        launch_workers(["true"], 0)
    with pytest.raises(ValueError, match="`restarts` must not be negative. Received: restarts=-1"):
        launch_workers(["true"], 1, -1)

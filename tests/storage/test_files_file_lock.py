"""The lock between threads, and between processes of which one is killed."""

import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kbert.storage.files import file_lock

HOLD = """
import sys, time
from kbert.storage.files import file_lock
with file_lock(sys.argv[1], lambda: None):
    sys.stdout.write("held\\n")
    sys.stdout.flush()
    time.sleep(60)
"""


def never() -> None:
    pytest.fail("nobody holds the lock")


def test_a_lock_that_nobody_holds(tmp_path: Path) -> None:
    for _ in range(2):
        with file_lock(tmp_path / "lock", never):
            pass
    assert (tmp_path / "lock").read_bytes() == b""


def test_a_raising_block_gives_the_lock_back(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no luck"):
        with file_lock(tmp_path / "lock", never):
            raise RuntimeError("no luck")
    with file_lock(tmp_path / "lock", never):
        pass


def test_threads_wait_for_one_another(tmp_path: Path) -> None:
    waits, inside = threading.Event(), []

    def second() -> None:
        with file_lock(tmp_path / "lock", waits.set):
            inside.append("second")

    thread = threading.Thread(target=second)
    with file_lock(tmp_path / "lock", never):
        thread.start()
        assert waits.wait(20)
        thread.join(0.2)
        assert thread.is_alive()
        inside.append("first")
    thread.join(20)
    assert inside == ["first", "second"]


def test_the_lock_goes_with_a_killed_process(tmp_path: Path, repository: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path / "lock")]
    with subprocess.Popen(command, cwd=repository, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        waited: list[int] = []

        def kill() -> None:
            waited.append(1)
            process.send_signal(signal.SIGKILL)

        with file_lock(tmp_path / "lock", kill):
            assert waited == [1]
    assert process.returncode == -signal.SIGKILL


def test_a_lock_whose_file_was_removed_is_taken_anew(tmp_path: Path) -> None:
    """The one who waited must hold the lock of the file that others see."""
    path, waits, inside = tmp_path / "folder" / "lock", threading.Event(), threading.Event()

    def second() -> None:
        with file_lock(path, waits.set):
            inside.set()
            assert path.is_file()
            free.wait(10)

    thread, free = threading.Thread(target=second), threading.Event()
    with file_lock(path, never):
        thread.start()
        assert waits.wait(10) and not inside.is_set()
        shutil.rmtree(path.parent)
    assert inside.wait(10)
    third = threading.Event()
    other = threading.Thread(target=lambda: file_lock(path, third.set).__enter__())
    other.start()
    assert third.wait(10)  # it waits for the second
    free.set()
    thread.join(10)
    other.join(10)

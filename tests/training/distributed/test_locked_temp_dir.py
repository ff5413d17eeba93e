"""Temporary folders of processes that end, and of such that are killed."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kbert.training.distributed.locked_temp_dir import LAUNCH, WORKER, own_folder, remove_left

HOLDS = """
import sys, time
from kbert.training.distributed.locked_temp_dir import WORKER, own_folder
with own_folder(WORKER) as folder:
    (folder / "states").mkdir()
    print(folder, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_goes_with_its_block(temporary):
    with own_folder(WORKER) as folder:
        assert list(temporary.iterdir()) == [folder]
        (folder / "file").touch()
        assert remove_left(WORKER) == []
    assert list(temporary.iterdir()) == []


def test_what_a_killed_process_left_is_removed(temporary, repository):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS],
        cwd=repository,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        folder = Path(process.stdout.readline().strip())
        assert (folder / "states").is_dir() and folder.parent == temporary
        assert remove_left(WORKER) == []
        process.send_signal(signal.SIGKILL)
    (temporary / "kbert-worker-elsewhere-1").mkdir()  # another machine's, for all that we know
    assert remove_left(LAUNCH) == []
    assert remove_left(WORKER) == [folder]
    assert not folder.exists() and (temporary / "kbert-worker-elsewhere-1").is_dir()

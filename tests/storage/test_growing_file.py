"""A file that goes on where it was stopped; all bytes are by hand, digests those of hashlib."""

import hashlib
import json
import logging
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kbert.storage import growing_file as module
from kbert.storage.growing_file import DATA, RECORD, growing_file, remove, whole_file

MADE_OF = {"of": "letters", "count": [1, 2]}
STOPPED = RuntimeError("stopped")


def partial(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.partial")


def stopped(folder: Path, pieces: list[bytes], unrecorded: bytes = b"", made_of=MADE_OF) -> None:
    """Writes pieces with a record after each, and then some bytes without one."""
    with pytest.raises(RuntimeError, match="stopped"):
        with growing_file(folder, made_of, 6) as file:
            for piece in pieces:
                file.append(piece)
                file.record()
            file.append(unrecorded)
            raise STOPPED


def finished(folder: Path, rest: bytes) -> int:
    """Writes the rest; the number of bytes that were there before."""
    with growing_file(folder, MADE_OF, 6) as file:
        before = file.done
        file.append(rest)
    return before


def test_a_file_in_one_go(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "x"
    with growing_file(folder, MADE_OF, 6) as file:
        file.append(b"abc")
        assert file.done == 3
        file.append(b"def")
        assert not folder.exists()
    assert whole_file(folder, MADE_OF, 6).read_bytes() == b"abcdef"
    record = json.loads((folder / RECORD).read_text())
    assert record == {
        "made_of": MADE_OF,
        "done": 6,
        "sha256": hashlib.sha256(b"abcdef").hexdigest(),
    }
    assert sorted(p.name for p in folder.iterdir()) == [RECORD, DATA]
    assert list(folder.parent.iterdir()) == [folder]


def test_a_file_of_no_bytes(tmp_path: Path) -> None:
    with growing_file(tmp_path / "x", MADE_OF, 0):
        pass
    assert whole_file(tmp_path / "x", MADE_OF, 0).read_bytes() == b""


def test_it_goes_on_after_the_last_record(tmp_path: Path) -> None:
    stopped(tmp_path / "x", [b"ab", b"c"], b"jnk")
    assert (partial(tmp_path / "x") / DATA).stat().st_size == 6
    with (partial(tmp_path / "x") / DATA).open("ab") as file:
        file.write(b"more than there will be")
    assert not (tmp_path / "x").exists()
    (partial(tmp_path / "x") / f".{RECORD}.0123.partial").touch()  # a record that came to nothing
    assert finished(tmp_path / "x", b"def") == 3
    assert whole_file(tmp_path / "x", MADE_OF, 6).read_bytes() == b"abcdef"
    assert sorted(p.name for p in (tmp_path / "x").iterdir()) == [RECORD, DATA]


def cut_data(folder: Path) -> None:
    os.truncate(folder / DATA, 2)


def other_byte(folder: Path) -> None:
    (folder / DATA).write_bytes(b"abX" + (folder / DATA).read_bytes()[3:])


def no_data(folder: Path) -> None:
    (folder / DATA).unlink()


def broken_record(folder: Path) -> None:
    (folder / RECORD).write_text('{"made_of"')


def list_as_record(folder: Path) -> None:
    (folder / RECORD).write_text("[]")


def no_record(folder: Path) -> None:
    (folder / RECORD).unlink()


def other_record(folder: Path) -> None:
    record = json.loads((folder / RECORD).read_text())
    record["made_of"]["of"] = "numbers"
    (folder / RECORD).write_text(json.dumps(record))


def record_below_zero(folder: Path) -> None:
    record = json.loads((folder / RECORD).read_text())
    (folder / RECORD).write_text(json.dumps({**record, "done": -1}))


def file_in_the_way(folder: Path) -> None:
    remove(folder)
    folder.write_text("in the way")


DAMAGES = {
    cut_data: "must have the SHA-256|must have 6 bytes",
    other_byte: "must have the SHA-256",
    no_data: "No such file|must have 6 bytes",
    broken_record: "must be a record",
    list_as_record: "must be a record",
    no_record: "must be a record",
    other_record: "must be of .*letters.* Received: .*numbers",
    record_below_zero: "`done` must be in .0, 6.. Received: done=-1|must have 6 bytes",
    file_in_the_way: "must be a record",
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_what_is_damaged_is_begun_anew(tmp_path: Path, damage, caplog) -> None:
    stopped(tmp_path / "x", [b"abc"])
    damage(partial(tmp_path / "x"))
    with caplog.at_level(logging.WARNING):
        assert finished(tmp_path / "x", b"ABCDEF") == 0
    assert whole_file(tmp_path / "x", MADE_OF, 6).read_bytes() == b"ABCDEF"
    (message,) = caplog.messages
    assert "cannot be continued, and is begun anew" in message
    assert re.search(DAMAGES[damage], message)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_file_is_not_whole(tmp_path: Path, damage) -> None:
    finished(tmp_path / "x", b"abcdef")
    damage(tmp_path / "x")
    with pytest.raises(ValueError, match=DAMAGES[damage]):
        whole_file(tmp_path / "x", MADE_OF, 6)


def test_a_file_of_another_size_is_not_whole(tmp_path: Path) -> None:
    finished(tmp_path / "x", b"abcdef")
    with pytest.raises(ValueError, match="must have 8 bytes. Received: 6, of which 6"):
        whole_file(tmp_path / "x", MADE_OF, 8)
    with (tmp_path / "x" / DATA).open("ab") as file:
        file.write(b"g")
    with pytest.raises(ValueError, match="must have 6 bytes. Received: 7, of which 6"):
        whole_file(tmp_path / "x", MADE_OF, 6)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="`folder` must be there"):
        whole_file(tmp_path / "x", MADE_OF, 6)


def test_too_few_and_too_many_bytes(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must have 6 bytes. Received: 2"):
        finished(tmp_path / "x", b"ab")
    with pytest.raises(ValueError, match="must fit into 6 bytes. Received: 7 after 0"):
        finished(tmp_path / "x", b"abcdefg")
    assert not (tmp_path / "x").exists()


def test_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = module.shutil.disk_usage(tmp_path)._replace(free=2)
    monkeypatch.setattr(module.shutil, "disk_usage", lambda path: free)
    with pytest.raises(OSError, match="must have room for 6 bytes more. Received: 2 bytes"):
        finished(tmp_path / "x", b"abcdef")


def test_the_data_are_on_the_disk_before_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    fsync, write = os.fsync, module.write_atomically

    def tell(descriptor: int) -> None:
        order.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        fsync(descriptor)

    with growing_file(tmp_path / "x", MADE_OF, 6) as file:
        monkeypatch.setattr(module.os, "fsync", tell)
        monkeypatch.setattr(
            module,
            "write_atomically",
            lambda path, text: (order.append("record begins"), write(path, text)),
        )
        file.append(b"abcdef")
        file.record()
        monkeypatch.undo()
    assert order[:2] == [DATA, "record begins"]


WRITER = """
import sys, time
from pathlib import Path
from kbert.storage.growing_file import growing_file
with growing_file(Path(sys.argv[1]), {"of": "letters"}, 26 * 1000) as file:
    sys.stdout.write(f"{file.done}\\n")
    sys.stdout.flush()
    for letter in range(file.done // 1000, 26):
        file.append(bytes([97 + letter]) * 1000)
        if letter % 3 == 0:
            file.record()
        sys.stdout.write(f"{letter}\\n")
        sys.stdout.flush()
        time.sleep(float(sys.argv[2]))
"""


def test_killed_in_the_middle(tmp_path: Path, repository: Path) -> None:
    def run(pause: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", WRITER, str(tmp_path / "x"), pause]
        return subprocess.Popen(command, cwd=repository, stdout=subprocess.PIPE)

    # The records hold 1, 4, 7, ... letters; it dies after writing the 6th or a little later.
    with run("0.05") as process:
        assert process.stdout is not None
        for _ in range(7):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "x").exists()
    with run("0") as process:
        assert process.stdout is not None
        begin = int(process.stdout.readline())
        process.stdout.read()
    assert process.returncode == 0
    assert begin in range(4000, 26000, 3000)
    expected = b"".join(bytes([letter]) * 1000 for letter in range(97, 123))
    assert whole_file(tmp_path / "x", {"of": "letters"}, 26000).read_bytes() == expected

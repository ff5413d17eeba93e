import os
from pathlib import Path

import pytest

from kbert.storage.files import atomic_file, remove_leftovers


def test_a_file_appears_when_the_block_ends(tmp_path: Path) -> None:
    target = tmp_path / "new" / "a.bin"
    with atomic_file(target) as partial:
        partial.write_bytes(b"12")
        assert not target.exists() and partial.parent == target.parent
        with partial.open("ab") as file:
            file.write(b"3")
    assert target.read_bytes() == b"123" and os.listdir(target.parent) == ["a.bin"]


def test_an_existing_file_is_replaced_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "a.bin"
    target.write_bytes(b"old")
    with atomic_file(str(target)) as partial:
        partial.write_bytes(b"new")
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new" and os.listdir(tmp_path) == ["a.bin"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("writes", [True, False])
def test_a_failed_block_leaves_nothing(
    tmp_path: Path, error: type[BaseException], writes: bool
) -> None:
    target = tmp_path / "a.bin"
    target.write_bytes(b"old")
    with pytest.raises(error, match="no luck"):
        with atomic_file(target) as partial:
            if writes:
                partial.write_bytes(b"half")
            raise error("no luck")
    assert target.read_bytes() == b"old" and os.listdir(tmp_path) == ["a.bin"]


def test_a_folder_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="`path` must be a file. Received a folder"):
        with atomic_file(tmp_path):
            pytest.fail("the block must not run")
    assert os.listdir(tmp_path) == []


def test_what_a_killed_block_leaves_is_a_leftover(tmp_path: Path) -> None:
    with atomic_file(tmp_path / "a.bin") as partial:
        partial.write_bytes(b"1")
        name = partial.name
    (tmp_path / name).write_bytes(b"half")
    assert remove_leftovers(tmp_path) == [name] and os.listdir(tmp_path) == ["a.bin"]

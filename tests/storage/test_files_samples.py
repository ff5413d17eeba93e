"""Files are told apart by what they hold, and large ones by samples of it."""

from pathlib import Path

import pytest

from kbert.storage.files import sampled_hashes

CONTENT = bytes(range(256)) * 1024  # 256 KiB


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(CONTENT)
    return [tmp_path / "a", tmp_path / "b"]


def changed(file: Path, place: int) -> None:
    content = bytearray(CONTENT)
    content[place] ^= 1
    file.write_bytes(content)


def test_any_byte_of_small_files_counts(files: list[Path]):
    before = sampled_hashes(files)
    assert len(set(before)) == 1 and len(before[0]) == 64
    for place in (0, 70_001, len(CONTENT) - 1):
        changed(files[1], place)
        after = sampled_hashes(files)
        assert after[0] == before[0] != after[1]
    files[1].write_bytes(b"")
    assert sampled_hashes(files)[1] != before[1]


def test_large_files_are_looked_at_in_some_places(files: list[Path]):
    """64 KiB of each in 16 places, by hand (256 - 4) / 15 = 16.8 KiB apart, up to the end."""
    before = sampled_hashes(files, most_bytes=1)
    step = (len(CONTENT) - 4096) / 15
    for number in (0, 1, 14, 15):
        changed(files[1], int(number * step))
        assert sampled_hashes(files, most_bytes=1)[1] != before[1]
    changed(files[1], len(CONTENT) - 1)
    assert sampled_hashes(files, most_bytes=1)[1] != before[1]
    changed(files[1], 4096)  # between two places
    assert sampled_hashes(files, most_bytes=1) == before

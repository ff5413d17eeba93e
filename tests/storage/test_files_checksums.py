"""The expected digest of b"abc" is the one of FIPS 180-2, appendix B.1."""

import hashlib
from pathlib import Path

import pytest

from kbert.storage.files import sha256_of, sha256_of_folder, verify_sha256

ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_sha256_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "abc"
    path.write_bytes(b"abc")
    assert sha256_of(path) == ABC
    verify_sha256(path, ABC)
    verify_sha256(str(path), ABC.upper())


def test_a_file_longer_than_a_piece(tmp_path: Path) -> None:
    # FIPS 180-2, appendix B.3: one million times the letter a; four pieces here.
    path = tmp_path / "a"
    path.write_bytes(b"a" * 1_000_000)
    million = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
    assert sha256_of(path) == million


def test_a_wrong_hash_names_both_values(tmp_path: Path) -> None:
    path = tmp_path / "abc"
    path.write_bytes(b"abc")
    with pytest.raises(ValueError, match=f"must have the SHA-256 {'0' * 64}.*sha256={ABC}"):
        verify_sha256(path, "0" * 64)


def test_a_hash_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`expected` must be 64 hexadecimal digits"):
        verify_sha256(tmp_path / "abc", "12")


def test_one_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    (folder / "b").mkdir(parents=True)
    (folder / "b" / "one").write_bytes(b"1")
    (folder / "two").write_bytes(b"2")
    # By hand: the lines that `sha256sum b/one two` prints, with one space.
    listed = "".join(
        f"{hashlib.sha256(content).hexdigest()} {name}\n"
        for name, content in (("b/one", b"1"), ("two", b"2"))
    )
    assert sha256_of_folder(folder) == hashlib.sha256(listed.encode()).hexdigest()
    (folder / "two").rename(folder / "three")
    assert sha256_of_folder(folder) != hashlib.sha256(listed.encode()).hexdigest()

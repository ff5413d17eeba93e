"""A large file that is written piece by piece, perhaps for hours, and survives interruptions.

Beside the data lies a record: what they are made of, how many bytes are valid, and the SHA-256 of
these. Data are flushed to the disk before the record counts them, so that it never claims too much.
The folder of both gets its name only when the file is complete.
"""

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from kbert.storage.atomic_directory import write_atomically

logger = logging.getLogger(__name__)
DATA = "data.bin"
RECORD = "about.json"
_CHUNK_BYTES = 1 << 20


class GrowingFile:
    """A file open for appending; from `growing_file`.

    Attributes:
        done: Number of bytes written.
    """

    def __init__(self, partial: Path, made_of: Mapping[str, Any], size: int) -> None:
        self._partial = partial
        self._made_of = made_of
        self._size = size
        self.done, self._digest = _recovered(partial, made_of, size)
        self._file: IO[bytes] = (partial / DATA).open("r+b")
        # What was written after the last record may be anything.
        self._file.truncate(self.done)
        self._file.seek(self.done)

    def append(self, data: bytes) -> None:
        """Writes bytes at the end.

        Args:
            data: The bytes.

        Raises:
            ValueError: The file would exceed its declared size.
        """
        if self.done + len(data) > self._size:
            raise ValueError(
                f"`data` must fit into {self._size} bytes. Received: {len(data)} after {self.done}"
            )
        self._file.write(data)
        self._digest.update(data)
        self.done += len(data)

    def record(self) -> None:
        """Makes what is written durable: flushes the data to the disk, then writes the record."""
        self._file.flush()
        os.fsync(self._file.fileno())
        _write_record(self._partial, self._made_of, self.done, self._digest)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


@contextmanager
def growing_file(
    folder: str | os.PathLike[str], made_of: Mapping[str, Any], size: int
) -> Iterator[GrowingFile]:
    """Yields a file to complete, resumed from where an earlier block was stopped.

    When the block succeeds, the file is in `folder`. When it raises or is killed, `folder` is as
    it was, and the next block for the same `made_of` resumes after the last record; what does not
    fit or is damaged is written from scratch, with a warning. Only one process may do this at a
    time, see `kbert.storage.file_lock`.

    Args:
        folder: The folder to make; must not exist.
        made_of: Identifies what the data depend on, JSON-serializable: other values, other data.
        size: Size of the complete file in bytes.

    Yields:
        The file.

    Raises:
        ValueError: The block wrote less than `size` bytes.
        OSError: The disk has no room for the file.
    """
    target = Path(os.path.abspath(folder))
    partial = target.with_name(f".{target.name}.partial")
    target.parent.mkdir(parents=True, exist_ok=True)
    file = GrowingFile(partial, made_of, size)
    try:
        free = shutil.disk_usage(partial).free
        if size - file.done > free:
            raise OSError(
                f"`{target.parent}` must have room for {size - file.done:,} bytes more. Received: "
                f"{free:,} bytes"
            )
        yield file
        if file.done != size:
            raise ValueError(f"`{target}` must have {size} bytes. Received: {file.done}")
        file.record()
    finally:
        file.close()
    os.rename(partial, target)
    _flush_folder(target.parent)


def whole_file(folder: str | os.PathLike[str], made_of: Mapping[str, Any], size: int) -> Path:
    """Checks all bytes of a finished file.

    Args:
        folder: Its folder.
        made_of: Identifies what the data depend on, the value given to `growing_file`.
        size: Size of the file in bytes.

    Returns:
        The path of the data.

    Raises:
        FileNotFoundError: The folder does not exist.
        ValueError: The file is damaged, or made of something else.
    """
    if not os.path.lexists(folder):
        raise FileNotFoundError(f"`folder` must be there. Received: folder={os.fspath(folder)!r}")
    done, digest = _read_record(Path(folder), made_of)
    path = Path(folder, DATA)
    found = path.stat().st_size if path.is_file() else 0
    if done != size or found != size:
        raise ValueError(
            f"`{path}` must have {size} bytes. Received: {found}, of which {done} are recorded"
        )
    _digest_of(path, size, digest)
    return path


def _recovered(partial: Path, made_of: Mapping[str, Any], size: int) -> tuple[int, Any]:
    """Prepares a folder to resume in; returns the valid bytes and their SHA-256 so far."""
    if os.path.lexists(partial):
        try:
            done, digest = _read_record(partial, made_of)
            if not 0 <= done <= size:
                raise ValueError(f"`done` must be in [0, {size}]. Received: done={done}")
            found = _digest_of(partial / DATA, done, digest)
        except (OSError, ValueError) as error:
            logger.warning("%s cannot be continued, and is begun anew: %s", partial, error)
            remove(partial)
        else:
            for entry in partial.iterdir():
                if entry.name not in (DATA, RECORD):
                    remove(entry)  # of a record that was being written
            return done, found
    partial.mkdir()
    (partial / DATA).touch()
    found = hashlib.sha256()
    _write_record(partial, made_of, 0, found)
    return 0, found


def _write_record(folder: Path, made_of: Mapping[str, Any], done: int, digest: Any) -> None:
    record = {"made_of": made_of, "done": done, "sha256": digest.hexdigest()}
    write_atomically(folder / RECORD, json.dumps(record, indent=2, ensure_ascii=False) + "\n")


def _read_record(folder: Path, made_of: Mapping[str, Any]) -> tuple[int, str]:
    """Returns the number of valid bytes, and their SHA-256."""
    path = folder / RECORD
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        found, done, digest = record["made_of"], int(record["done"]), str(record["sha256"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"`{path}` must be a record. Received: {error!r}") from error
    wanted = json.loads(json.dumps(made_of))
    if found != wanted:
        raise ValueError(f"`{path}` must be of {wanted}. Received: {found}")
    return done, digest


def _digest_of(path: Path, size: int, expected: str) -> Any:
    """Returns the SHA-256 of the first `size` bytes of a file, which must be the expected one."""
    digest, left = hashlib.sha256(), size
    with path.open("rb") as file:
        while left and (chunk := file.read(min(left, _CHUNK_BYTES))):
            digest.update(chunk)
            left -= len(chunk)
    if left or digest.hexdigest() != expected:
        raise ValueError(
            f"the first {size} bytes of `{path}` must have the SHA-256 {expected}. Received: "
            f"{size - left} bytes with {digest.hexdigest()}"
        )
    return digest


def remove(path: Path) -> None:
    """Removes a file, a link, or a folder with all that it holds.

    Args:
        path: The file, link or folder.
    """
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""Atomic writes: a folder or a file is complete, or not there at all.

And a lock, which one process holds at a time.
"""

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

# Names of folders that are being written or removed.
_LEFTOVER = re.compile(r"\..+\.[0-9a-f]{12}\.(partial|old)", re.DOTALL)


@contextmanager
def atomic_directory(path: str | os.PathLike[str], overwrite: bool = False) -> Iterator[Path]:
    """Yields a new folder to fill, which becomes `path` when the block succeeds.

    The folder is a hidden sibling of `path`, so that the last step is a rename within one
    file system. Its files are flushed to the disk before the rename. When the block raises, the
    folder is removed and `path` stays as it was.

    A replaced folder is moved aside by one rename and the new one takes its place by the next;
    the old one is deleted only after that. If the process is killed between these two renames, the
    old folder is still there, complete, as `.<name>.<digits>.old`.

    Args:
        path: The folder to make. Missing parents are made.
        overwrite: Whether an existing folder may be replaced, with all that it holds.

    Yields:
        The folder to write into.

    Raises:
        FileExistsError: If `path` exists and `overwrite` is False, at the start or at the end.
        NotADirectoryError: If `path` is a file.
    """
    # A relative path must still mean the same folder if the block changes the working directory.
    target = Path(os.path.abspath(path))
    _check_target(target, overwrite, path)
    target.parent.mkdir(parents=True, exist_ok=True)
    mark = f".{target.name}.{secrets.token_hex(6)}"
    partial = target.with_name(f"{mark}.partial")
    partial.mkdir()
    try:
        yield partial
        _flush_tree(partial)
        _check_target(target, overwrite, path)
        _move_into_place(partial, target, aside=target.with_name(f"{mark}.old"))
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    _flush(target.parent)


def rename_directory(
    folder: str | os.PathLike[str],
    target: str | os.PathLike[str],
    overwrite: bool = False,
    without: str | None = None,
) -> None:
    """Renames a complete folder after all that it holds is flushed to the disk.

    It has one of the two names at any time, even if the process is killed.

    Args:
        folder: The folder, a sibling of `target`.
        target: Its new name.
        overwrite: Whether an existing folder may be replaced, as by `atomic_directory`.
        without: A file in it that is removed just before, such as a lock that others look at.

    Raises:
        FileExistsError: If `target` exists and `overwrite` is False.
        NotADirectoryError: If `target` is a file.
    """
    source, path = Path(os.path.abspath(folder)), Path(os.path.abspath(target))
    _check_target(path, overwrite, target)
    _flush_tree(source)
    if without is not None:
        (source / without).unlink()
    aside = path.with_name(f".{path.name}.{secrets.token_hex(6)}.old")
    _move_into_place(source, path, aside)
    _flush(path.parent)


def remove_atomically(path: str | os.PathLike[str]) -> None:
    """Removes a folder with all that it holds; its name never shows a part of it.

    It is renamed to a hidden sibling first. If the process is killed after that, the sibling stays,
    and `remove_leftovers` removes it.

    Args:
        path: The folder.

    Raises:
        FileNotFoundError: If there is none.
        NotADirectoryError: If `path` is a file.
    """
    target = Path(os.path.abspath(path))
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(f"`path` must be a folder. Received a file: path={str(target)!r}")
    aside = target.with_name(f".{target.name}.{secrets.token_hex(6)}.old")
    os.rename(target, aside)
    shutil.rmtree(aside, ignore_errors=True)
    _flush(target.parent)


def remove_leftovers(folder: str | os.PathLike[str]) -> list[str]:
    """Removes what `atomic_directory` and `remove_atomically` left when they were killed.

    The caller must know that neither is running there, for example by a `file_lock`, and that none
    was replacing a folder: then the old one may be among what is left.

    Args:
        folder: The folder that they wrote into. It need not exist.

    Returns:
        The names of what was removed.
    """
    path = Path(folder)
    children = sorted(path.iterdir()) if path.is_dir() else []
    left = [child for child in children if _LEFTOVER.fullmatch(child.name)]
    for child in left:
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(child, ignore_errors=True)
        else:
            child.unlink(missing_ok=True)
    return [child.name for child in left]


def write_atomically(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Writes a file completely or not at all; an existing file is replaced.

    Args:
        path: The file. Missing parents are made.
        content: Its bytes, or its text, which is written as UTF-8 with its line ends unchanged.

    Raises:
        IsADirectoryError: If `path` is a folder.
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"`path` must be a file. Received a folder: path={str(target)!r}")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{secrets.token_hex(6)}.partial")
    try:
        with partial.open("xb") as file:
            file.write(content.encode("utf-8") if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    _flush(target.parent)


@contextmanager
def file_lock(path: str | os.PathLike[str], on_wait: Callable[[], None]) -> Iterator[None]:
    """Holds the lock of a file while the block runs; waits until it is free.

    It is released however the process ends. Threads of one process exclude each other too. The
    file is not removed: otherwise a process might hold the lock of a file that no other one can
    see.

    Args:
        path: The file, empty; created if missing. Its folder must exist.
        on_wait: Called once before it waits.

    Yields:
        Nothing.
    """
    with Path(path).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _check_target(target: Path, overwrite: bool, given: str | os.PathLike[str]) -> None:
    """Raises if `target` may not be written; the message names the path of the caller."""
    if not os.path.lexists(target):
        return
    received = f"path={os.fspath(given)!r}"
    if not target.is_dir():
        raise NotADirectoryError(f"`path` must be a folder. Received a file: {received}")
    if not overwrite:
        raise FileExistsError(
            f"`path` must not exist yet, unless overwrite=True. Received: {received}"
        )


def _move_into_place(partial: Path, target: Path, aside: Path) -> None:
    """Renames `partial` to `target`; what `target` held is deleted after that."""
    if not os.path.lexists(target):
        os.rename(partial, target)
        return
    os.rename(target, aside)
    try:
        os.rename(partial, target)
    except BaseException:
        os.rename(aside, target)
        raise
    # The new folder is in place: a leftover of the old one must not turn success into failure.
    if aside.is_symlink():
        aside.unlink()
    else:
        shutil.rmtree(aside, ignore_errors=True)


def _flush_tree(folder: Path) -> None:
    """Flushes all files of a folder, and the folders themselves, to the disk."""
    for root, _, files in os.walk(folder):
        for name in files:
            _flush(Path(root, name))
        _flush(Path(root))


def _flush(path: Path) -> None:
    """Flushes one file or folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

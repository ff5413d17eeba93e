"""Files and folders that are complete or not there at all, a lock, and the SHA-256 of their bytes.

Folders and files are written under another name and renamed. Of large files samples are hashed.
"""

import fcntl
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

# Names of folders that are being written or removed.
_LEFTOVER = re.compile(r"\..+\.[0-9a-f]{12}\.(partial|old)", re.DOTALL)
_MOST_BYTES = 1 << 28  # of all files together, read at each start of a run
_LEAST_BYTES, _PIECE = 1 << 16, 1 << 12  # of one file, and of one sample of it


# One of which a saved model has: weights of kbert and Hugging Face, CTranslate2, and TensorFlow.
MODEL_FILES = ("*.safetensors", "model.bin", "*.index")


@contextmanager
def atomic_directory(
    path: str | os.PathLike[str], overwrite: bool = False, replaces: Sequence[str] = ()
) -> Iterator[Path]:
    """Yields a new folder to fill, which becomes `path` when the block succeeds.

    The folder is a hidden sibling of `path`, so that the last step is a rename within one file
    system. Its files are flushed to the disk before the rename. When the block raises, the folder
    is removed and `path` stays as it was.

    A folder that is replaced (`overwrite`) is moved aside by one rename and the new one takes its
    place by the next; the old one is deleted only after that. If the process is killed between
    these two renames, the old folder is still there, complete, as `.<name>.<digits>.old`.

    Raises a FileExistsError if `path` exists and `overwrite` is False, at the start or at the end,
    or holds something, but no file of a pattern of `replaces`, if there are any; a
    NotADirectoryError if it is a file; and a TypeError if it is no path. Missing parents are made.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"`path` must be the path of a folder. Received: path={path!r:.80}")
    # A relative path must still mean the same folder if the block changes the working directory.
    target = Path(os.path.abspath(path))
    _check_target(target, overwrite, path)
    if replaces and target.is_dir() and any(target.iterdir()):
        if not any(file for pattern in replaces for file in target.glob(pattern)):
            raise FileExistsError(
                "`path` must be new, empty, or a saved model: nothing else is overwritten. "
                f"Received: path={os.fspath(path)!r}"
            )
    make_folder(target.parent)
    partial = _hidden_sibling(target, "partial")
    partial.mkdir()
    try:
        yield partial
        _flush_tree(partial)
        _check_target(target, overwrite, path)
        _move_into_place(partial, target)
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
    """Renames a complete folder to a sibling `target` after all that it holds is on the disk.

    It has one of the two names at any time, even if the process is killed. `without` names a file
    in it that is removed just before, such as a lock that others look at. `overwrite` and the
    errors are those of `atomic_directory`.
    """
    source, path = Path(os.path.abspath(folder)), Path(os.path.abspath(target))
    _check_target(path, overwrite, target)
    _flush_tree(source)
    if without is not None:
        (source / without).unlink()
    _move_into_place(source, path)
    _flush(path.parent)


def remove_atomically(path: str | os.PathLike[str]) -> None:
    """Removes a folder with all that it holds; its name never shows a part of it.

    It is renamed to a hidden sibling first. If the process is killed after that, the sibling stays,
    and `remove_leftovers` removes it. Raises a FileNotFoundError where there is nothing, and a
    NotADirectoryError if `path` is a file.
    """
    target = Path(os.path.abspath(path))
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(f"`path` must be a folder. Received a file: path={str(target)!r}")
    aside = _hidden_sibling(target, "old")
    os.rename(target, aside)
    shutil.rmtree(aside, ignore_errors=True)
    _flush(target.parent)


def remove_leftovers(folder: str | os.PathLike[str]) -> list[str]:
    """Removes what killed `atomic_directory` and `remove_atomically` left in a folder.

    The caller must know that neither is running there, for example by a `file_lock`, and that none
    was replacing a folder: then the old one may be among what is left. Returns the names of what
    was removed; `folder` need not exist.
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

    A str is written as UTF-8 with its line ends unchanged; missing parents are made. Raises an
    IsADirectoryError if `path` is a folder.
    """
    with atomic_file(path) as partial:
        partial.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields the name of a new file to write, which becomes `path` when the block succeeds.

    An existing file is replaced, missing parents are made. When the block raises, nothing is left
    of it. Raises an IsADirectoryError if `path` is a folder.
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"`path` must be a file. Received a folder: path={str(target)!r}")
    make_folder(target.parent)
    partial = _hidden_sibling(target, "partial")
    try:
        yield partial
        _flush(partial)
        os.replace(partial, target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    _flush(target.parent)


@contextmanager
def file_lock(path: str | os.PathLike[str], on_wait: Callable[[], None]) -> Iterator[None]:
    """Holds the lock of a file while the block runs; calls `on_wait` once before it must wait.

    It is released however the process ends. Threads of one process exclude each other too. The file
    is empty, and created with its folder if missing. The holder may remove it.
    """
    target, waited = Path(path), False
    while True:
        make_folder(target.parent)
        try:
            file = target.open("a")
        except FileNotFoundError:  # the folder has just been removed again
            continue
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not waited:
                    on_wait()
                waited = True
                fcntl.flock(file, fcntl.LOCK_EX)
            if _is_open_as(target, file.fileno()):
                yield
                return


def _is_open_as(path: Path, descriptor: int) -> bool:
    """Returns whether an open file is the one at a path, and was not removed meanwhile."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def make_folder(folder: Path) -> None:
    """Makes a folder with those above it; a NotADirectoryError if a file is in the way."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise NotADirectoryError(f"`{folder}` must be a folder. Received: a file there") from error


def _hidden_sibling(path: Path, kind: str) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}.{kind}")


def _check_target(target: Path, overwrite: bool, given: str | os.PathLike[str]) -> None:
    """Raises if `target` may not be written; the message names the path of the caller."""
    if not os.path.lexists(target):
        return
    received = f"path={os.fspath(given)!r}"
    if not target.is_dir():
        raise NotADirectoryError(f"`path` must be a folder. Received a file: {received}")
    if overwrite is not True:  # nor "no", which counts as true
        raise FileExistsError(
            f"`path` must not exist yet, unless overwrite=True. Received: {received}"
        )


def _move_into_place(partial: Path, target: Path) -> None:
    """Renames `partial` to `target`; what `target` held is deleted after that."""
    if not os.path.lexists(target):
        os.rename(partial, target)
        return
    aside = _hidden_sibling(target, "old")
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
    for root, _, files in os.walk(folder):
        for name in files:
            _flush(Path(root, name))
        _flush(Path(root))


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256_of(path: str | os.PathLike[str]) -> str:
    """Returns the SHA-256 of a file's bytes as 64 lower-case hexadecimal digits."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_folder(path: str | os.PathLike[str]) -> str:
    """Returns one SHA-256 for all files of a folder, with their names, at any depth."""
    folder = Path(path)
    digest = hashlib.sha256()
    for file in sorted(one for one in folder.rglob("*") if one.is_file()):
        digest.update(f"{sha256_of(file)} {file.relative_to(folder).as_posix()}\n".encode())
    return digest.hexdigest()


def verify_sha256(path: str | os.PathLike[str], expected: str) -> None:
    """Raises a ValueError if `expected` is no SHA-256, or a file has another one."""
    if not re.fullmatch(r"[0-9a-fA-F]{64}", expected):
        raise ValueError(f"`expected` must be 64 hexadecimal digits. Received: {expected!r}")
    found = sha256_of(path)
    if found != expected.lower():
        raise ValueError(
            f"`{path}` must have the SHA-256 {expected.lower()}: the file is damaged, or it is "
            f"another one. Received: sha256={found}"
        )


def sampled_hashes(files: Sequence[Path], most_bytes: int = _MOST_BYTES) -> list[str]:
    """Hashes files by their size and contents: the SHA-256 of each, in hexadecimal.

    If the files are larger than `most_bytes` together, each is sampled at offsets that are evenly
    spread over it, at least 64 KiB; a change between these that keeps the size is not detected.
    """
    share = max(_LEAST_BYTES, most_bytes // max(len(files), 1))
    is_small = sum(file.stat().st_size for file in files) <= most_bytes
    return [
        sha256_of(file) if is_small or file.stat().st_size <= share else _sampled(file, share)
        for file in files
    ]


def _sampled(file: Path, share: int) -> str:
    """Hashes the size and about `share` bytes, the first and the last ones among them."""
    size, pieces = file.stat().st_size, share // _PIECE
    digest = hashlib.sha256(str(size).encode())
    with file.open("rb") as stream:
        for number in range(pieces):
            stream.seek(number * (size - _PIECE) // (pieces - 1))
            digest.update(stream.read(_PIECE))
    return digest.hexdigest()

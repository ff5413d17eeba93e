"""Files that only `tf.io.gfile` reads, at names with a scheme such as gs://: in a bucket, mostly.

TensorFlow 2.20 has gs:// and ram:// built in; packages bring others.
"""

import os
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import tensorflow as tf

SCHEME = "://"
# A byte-level BPE is a vocabulary in JSON with this beside it.
_BESIDE = "merges.txt"


def is_remote(path: str | os.PathLike[str]) -> bool:
    """Returns whether a name has a scheme, such as gs://, and is no path of this machine."""
    return SCHEME in os.fspath(path)


class RemoteFile(os.PathLike[str]):
    """A file by its name with a scheme, with what `Corpus` uses of `pathlib.Path`."""

    def __init__(self, name: str | os.PathLike[str]) -> None:
        self._path = os.fspath(name)

    def __fspath__(self) -> str:
        return self._path

    def __str__(self) -> str:
        return self._path

    @property
    def name(self) -> str:
        """The last part of the name."""
        return posixpath.basename(self._path)

    def is_file(self) -> bool:
        """Returns whether there is such a file."""
        return bool(tf.io.gfile.exists(self._path)) and not self.is_dir()

    def is_dir(self) -> bool:
        """Returns whether it is a folder."""
        return bool(tf.io.gfile.isdir(self._path))

    def stat(self) -> Any:
        """Returns an object with `st_size`, the size in bytes."""
        return SimpleNamespace(st_size=int(tf.io.gfile.stat(self._path).length))

    def open(self, mode: str = "rb") -> Any:
        """Opens it for reading; parts are fetched as they are read."""
        return tf.io.gfile.GFile(self._path, mode)


@contextmanager
def fetched(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a path of this machine with what is at `path`; a copy while the block runs, if remote.

    A folder comes with all that it holds; a file with a `merges.txt` beside it.

    Raises:
        FileNotFoundError: there is nothing at a remote path.
    """
    name = os.fspath(path).rstrip("/")
    if not is_remote(name):
        yield Path(path)
        return
    if not tf.io.gfile.exists(name):
        raise FileNotFoundError(f"`path` must exist. Received: path={name!r}")
    with TemporaryDirectory(prefix="kbert-") as folder:
        target = Path(folder, posixpath.basename(name))
        if tf.io.gfile.isdir(name):
            _copy_folder(name, target)
        else:
            tf.io.gfile.copy(name, str(target))
            beside = posixpath.join(posixpath.dirname(name), _BESIDE)
            if tf.io.gfile.exists(beside):
                tf.io.gfile.copy(beside, str(target.parent / _BESIDE), overwrite=True)
        yield target


def _copy_folder(name: str, target: Path) -> None:
    target.mkdir()
    for child in (entry.rstrip("/") for entry in tf.io.gfile.listdir(name)):
        if tf.io.gfile.isdir(posixpath.join(name, child)):
            _copy_folder(posixpath.join(name, child), target / child)
        else:
            tf.io.gfile.copy(posixpath.join(name, child), str(target / child))

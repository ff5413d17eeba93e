"""TensorFlow's file system in memory, ram://, as one of Apache Beam's: it stands for a bucket.

Like a bucket it has no rename of folders; both see the same files, in this process alone.
"""

import posixpath
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from apache_beam.io.filesystem import FileMetadata, FileSystem

gfile = tf.io.gfile


class RamFileSystem(FileSystem):
    """Found by Beam as all subclasses are, by its scheme."""

    @classmethod
    def scheme(cls) -> str:
        return "ram"

    def join(self, basepath: str, *paths: str) -> str:
        return posixpath.join(basepath, *paths)

    def split(self, path: str) -> tuple[str, str]:
        head, _, tail = path.rpartition("/")
        return head, tail

    def mkdirs(self, path: str) -> None:
        gfile.makedirs(path)

    def has_dirs(self) -> bool:
        return False

    def _list(self, dir_or_prefix: str) -> Iterator[FileMetadata]:
        folder, _ = self.split(dir_or_prefix)  # to ram:// the beginning of a name is a folder too
        for name in gfile.listdir(folder) if gfile.isdir(folder) else []:
            path = posixpath.join(folder, name)
            if gfile.isdir(path):
                yield from self._list(f"{path}/")
            else:
                yield self.metadata(path)

    def create(self, path: str, *args: Any, **kwargs: Any) -> Any:
        gfile.makedirs(posixpath.dirname(path))
        return gfile.GFile(path, "wb")

    def open(self, path: str, *args: Any, **kwargs: Any) -> Any:
        return gfile.GFile(path, "rb")

    def copy(self, source_file_names: list[str], destination_file_names: list[str]) -> None:
        for source, destination in zip(source_file_names, destination_file_names):
            gfile.copy(source, destination, overwrite=True)

    def rename(self, source_file_names: list[str], destination_file_names: list[str]) -> None:
        for source, destination in zip(source_file_names, destination_file_names):
            gfile.rename(source, destination, overwrite=True)

    def exists(self, path: str) -> bool:
        return bool(gfile.exists(path))

    def size(self, path: str) -> int:
        return int(gfile.stat(path).length)

    def last_updated(self, path: str) -> float:
        return float(gfile.stat(path).mtime_nsec / 1e9)

    def metadata(self, path: str) -> FileMetadata:
        return FileMetadata(path, self.size(path), self.last_updated(path))

    def delete(self, paths: list[str]) -> None:
        for path in paths:
            (gfile.rmtree if gfile.isdir(path) else gfile.remove)(path)

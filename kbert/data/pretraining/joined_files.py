"""Several text files, plain or gzipped, read as one."""

import io
import os
import zlib
from collections.abc import Sequence
from typing import Any

from kbert.data.pretraining.corpus_cuts import FILE_SEPARATOR
from kbert.data.tables.text_files import open_text

_BETWEEN = f"\n{FILE_SEPARATOR}\n".encode()


class JoinedFiles(io.RawIOBase):
    """Files one after the other, with a line between them that ends a document.

    Args:
        paths: the files; one is open at a time.
    """

    def __init__(self, paths: Sequence[str | os.PathLike[str]]) -> None:
        super().__init__()
        self._paths = list(paths)
        self._file: Any = None

    def readable(self) -> bool:
        """Returns True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Reads at most `size` bytes; returns none only at the end.

        Raises:
            ValueError: a file is not gzip; the message names it.
        """
        while self._paths:
            if self._file is None:
                self._file = open_text(self._paths[0])
            try:
                part: bytes = self._file.read(size)
            except (OSError, EOFError, zlib.error) as error:
                raise ValueError(
                    f"{self._paths[0]}: the file must be gzip data. Received: {error}"
                ) from error
            if part:
                return part
            self._file.close()
            self._file = None
            self._paths.pop(0)
            if self._paths:
                return _BETWEEN
        return b""

    def close(self) -> None:
        """Closes the file that is open."""
        if self._file is not None:
            self._file.close()
        super().close()

"""The log of a run: its lines, and the warnings that came while it was trained."""

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any


class RunLog:
    """Log lines with their time; those before the file is open are buffered for it.

    `warnings` has the text of each warning that was logged while `listening`.
    """

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self._waiting: list[str] = []
        self._file: IO[str] | None = None
        self._handler = _Handler(self)

    def line(self, text: str) -> None:
        """Writes one line, or several, to stderr and to the file."""
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
        stamp = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        lines = [f"{stamp}  {line}\n" for line in text.split("\n")]
        if self._file is None:
            self._waiting.extend(lines)
        else:
            self._file.writelines(lines)
            self._file.flush()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Logs Python's warnings and those of kbert's loggers while the block runs.

        Of several logs that listen, one within the block of another, the innermost gets them.
        """
        logger = logging.getLogger("kbert")
        # The log of a run around this one, such as that of its seeds, would say all once more.
        outer = [handler for handler in logger.handlers if isinstance(handler, _Handler)]
        for handler in outer:
            logger.removeHandler(handler)
        logger.addHandler(self._handler)
        try:
            with warnings.catch_warnings():
                warnings.showwarning = self._show
                yield
        finally:
            logger.removeHandler(self._handler)
            for handler in outer:
                logger.addHandler(handler)

    @contextmanager
    def writing(self, path: Path) -> Iterator[None]:
        """Writes lines to a file too while the block runs, the buffered ones first."""
        with path.open("a", encoding="utf-8") as file:
            file.writelines(self._waiting)
            self._waiting, self._file = [], file
            try:
                yield
            finally:
                self._file = None

    def warn(self, text: str, kind: str = "Warning") -> None:
        """Writes a warning, and keeps it in `warnings`."""
        self.warnings.append(text)
        self.line(f"{kind}: {text}")

    def _show(self, message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        self.warn(str(message), category.__name__)


class _Handler(logging.Handler):
    """Passes logged warnings to a `RunLog`."""

    def __init__(self, log: RunLog) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Passes on one record."""
        self._log.warn(record.getMessage())

"""Plain text of any size, in blocks of bounded size that can be read in any order.

Documents are separated by blank lines, or by lines of another kind; within a document there may be
one sentence a line, one paragraph a line, or hard-wrapped lines.
"""

import codecs
import hashlib
import logging
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from kbert.data.pretraining import corpus_cuts as cuts
from kbert.data.tables.columns import is_gzipped, open_text
from kbert.storage.files import sampled_hashes

logger = logging.getLogger(__name__)
_LOOK = 1 << 16  # bytes of each file that are checked before anything else
_GZIP_GAIN = 4  # a text is about as many times larger than its gzip file


@dataclass(frozen=True)
class Block:
    """A run of consecutive documents."""

    run: int  # number of the file, or of the files that are read as one, in the corpus
    number: int  # number of the block in its run. Both identify it, in every order of reading
    documents: tuple[str, ...]  # their texts, without the separators; none is blank
    source: str


@dataclass(frozen=True)
class _Run:
    """Files that are read one after the other, or one large file that is read from any offset.

    Only the latter has a `size`, in bytes, and its number of `blocks`, which is else unknown: 0.
    """

    paths: tuple[Path, ...]
    size: int | None = None
    blocks: int = 0

    def __str__(self) -> str:
        more = f" and {len(self.paths) - 1} more" if len(self.paths) > 1 else ""
        return f"{self.paths[0]}{more}"


class Corpus:
    """Text files as blocks of documents.

    A block is a function of the files alone, and at most 2.5 times `block_bytes` long. A document
    ends with its file. One that is longer than a block is cut at the end of a line or a sentence,
    and its parts count as documents; this is logged. Large plain files are read in any order; a
    gzipped one from its start; small ones are joined to fill a block. A ValueError says that there
    is no file, only empty ones, or one that is not text.

    Args:
        files: paths of UTF-8 text (a byte order mark is accepted), or of such text gzipped, with
            .gz at the end of the name; or `RemoteFile`s.
        separator: a regular expression for the whole lines that separate documents, such as "====
            .* ===="; these belong to no document. None: blank lines.
        block_bytes: approximate size of a block. Memory grows with it, and so do the number of
            documents that a random one is drawn from and, with it, the time to the first example.
        encoding_errors: "strict", or "replace" to read U+FFFD for bytes that are not UTF-8.
        argument: the name of `files` in errors.
    """

    def __init__(
        self,
        files: Sequence[str | os.PathLike[str]],
        separator: str | None = None,
        block_bytes: int = cuts.BLOCK_BYTES,
        encoding_errors: str = "strict",
        argument: str = "files",
    ) -> None:
        if isinstance(files, (str, os.PathLike)):
            raise TypeError(f"`{argument}` must be a list of paths. Received: files={files!r}")
        if block_bytes < 16:
            raise ValueError(f"`block_bytes` must be at least 16. Received: {block_bytes}")
        if encoding_errors not in ("strict", "replace"):
            raise ValueError(
                "`encoding_errors` must be 'strict' or 'replace'. "
                f"Received: encoding_errors={encoding_errors!r}"
            )
        self.files: tuple[Any, ...] = tuple(
            file if hasattr(file, "open") else Path(file) for file in files
        )
        self.separator = separator
        self.block_bytes = block_bytes
        self.encoding_errors = encoding_errors
        self._end = cuts.document_end(separator)
        for file in self.files:
            _check_file(file, encoding_errors)
        self._sizes = [file.stat().st_size for file in self.files]
        self._runs = _runs(self.files, self._sizes, block_bytes)
        if not self._runs:
            raise ValueError(f"`{argument}` must hold text. Received: {_listed(self.files)}")
        self._told: set[int] = set()

    @property
    def size(self) -> int:
        """The size of all files on disk, in bytes."""
        return sum(self._sizes)

    @cached_property  # a run reads it several times
    def fingerprint(self) -> str:
        """A SHA-256 of the files' names and contents, the separator and `encoding_errors`.

        See `kbert.storage.files`: of more than 256 MiB, only samples are hashed.
        """
        names = [f"{f.name}:{own}" for f, own in zip(self.files, sampled_hashes(self.files))]
        parts = [*names, str(self.separator), self.encoding_errors]
        return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()

    def __str__(self) -> str:
        return _listed(self.files)

    def blocks(
        self,
        seed: int | None = None,
        epoch: int = 0,
        worker: int = 0,
        workers: int = 1,
        first: int = 0,
    ) -> Iterator[Block]:
        """Reads blocks, one at a time, in the same order for the same arguments.

        A ValueError says that a file is not UTF-8 (with file and line) or not gzip.

        Args:
            seed: shuffles what can be read in any order, differently in each epoch; None keeps the
                order.
            worker: index of the worker that reads, from 0. Each block goes to one worker.
            first: number of this worker's blocks to skip. Of plain files they are not read, of
                gzipped ones they are.
        """
        check_worker(worker, workers)
        units = [
            (number, place)
            for number, run in enumerate(self._runs)
            for place in (range(run.blocks) if run.blocks else (None,))
        ]
        order = range(len(units))
        if seed is not None:
            order = np.random.default_rng((seed, epoch)).permutation(len(units)).tolist()
        own = 0
        for rank, unit in enumerate(order):
            number, place = units[unit]
            if place is None:
                # The number of blocks of these files is unknown, so all workers read them all.
                paths = self._runs[number].paths
                with closing(cuts.joined_parts(paths, self.block_bytes)) as parts:
                    for piece in cuts.pieces(parts, self.block_bytes, self._end):
                        if (rank + piece.number) % workers == worker:
                            own += 1
                            if own > first:
                                yield self._block(number, piece)
            elif rank % workers == worker:
                own += 1
                if own > first:
                    run = self._runs[number]
                    with run.paths[0].open("rb") as file:
                        size = run.size or 0
                        piece = cuts.piece_at(file, place, size, self.block_bytes, self._end)
                    yield self._block(number, piece)

    def _block(self, number: int, piece: cuts.Piece) -> Block:
        run = self._runs[number]
        if piece.is_cut and number not in self._told:
            self._told.add(number)
            logger.warning(
                "%s: a document longer than `block_bytes`=%d was cut into parts",
                run,
                self.block_bytes,
            )
        try:
            text = piece.content.decode("utf-8", self.encoding_errors)
        except UnicodeDecodeError:
            _raise_where_broken(run.paths)
            raise  # the file has been corrected meanwhile
        documents = (part.strip("\n\ufeff") for part in _between(self._end, text))
        kept = tuple(part for part in documents if part.strip())
        return Block(number, piece.number, kept, str(run))


def check_worker(worker: int, workers: int) -> None:
    """Raises a ValueError where a worker's index is not in [0, workers)."""
    if not 0 <= worker < workers:
        raise ValueError(
            "`worker` must be at least 0 and less than `workers`. "
            f"Received: worker={worker}, workers={workers}"
        )


def _between(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    """Yields the text around matches; `re.split` would return the groups of matches too."""
    begin = 0
    for found in pattern.finditer(text):
        yield text[begin : found.start()]
        begin = found.end()
    yield text[begin:]


def _runs(files: Sequence[Path], sizes: Sequence[int], block_bytes: int) -> list[_Run]:
    """Returns runs: of one large file each, or of small files that fill a block together."""
    runs: list[_Run] = []
    small: list[Path] = []
    filled = 0
    for file, size in zip(files, sizes):
        is_plain = not is_gzipped(file)
        text_size = size if is_plain else size * _GZIP_GAIN
        if 2 * text_size >= block_bytes and is_plain:
            runs.append(_Run((file,), size, cuts.count_pieces(size, block_bytes)))
        elif 2 * text_size >= block_bytes:
            runs.append(_Run((file,)))
        elif size:
            small.append(file)
            filled += text_size
            if filled >= block_bytes:
                runs.append(_Run(tuple(small)))
                small, filled = [], 0
    return [*runs, _Run(tuple(small))] if small else runs


def _check_file(file: Path, encoding_errors: str) -> None:
    if not file.is_file():
        problem = "which is a folder" if file.is_dir() else "which is no file"
        raise FileNotFoundError(f"`files` must be files. Received: {os.fspath(file)!r}, {problem}")
    with closing(open_text(file)) as stream:
        beginning = cuts.read_part(stream, _LOOK, file)
    if b"\0" in beginning:
        raise ValueError(
            f"{file}: the file must be UTF-8 text. Received: a zero byte at {beginning.index(0)}, "
            "as in binary files and UTF-16"
        )
    if encoding_errors == "strict":
        _decoded(codecs.getincrementaldecoder("utf-8")(), beginning, file, 1)


def _raise_where_broken(files: Sequence[Path]) -> None:
    for file in files:
        decoder = codecs.getincrementaldecoder("utf-8")()
        line = 1
        with closing(open_text(file)) as stream:
            while part := stream.read(_LOOK):
                line += _decoded(decoder, part, file, line).count("\n")
            _decoded(decoder, b"", file, line, final=True)


def _decoded(
    decoder: codecs.IncrementalDecoder, part: bytes, file: Path, line: int, final: bool = False
) -> str:
    try:
        return decoder.decode(part, final)
    except UnicodeDecodeError as error:
        line += error.object.count(b"\n", 0, error.start)
        raise ValueError(
            f"{file}, line {line}: the file must be UTF-8 text. Received: the byte "
            f"{error.object[error.start]:#04x}. `encoding_errors` must be 'replace' to read it as "
            "U+FFFD"
        ) from error


def _listed(files: Sequence[Path]) -> str:
    names = ", ".join(os.fspath(file) for file in files[:3])
    return f"{names}{f' and {len(files) - 3} more' if len(files) > 3 else ''}" or "no file"

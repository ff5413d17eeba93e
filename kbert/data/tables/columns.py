"""Texts of UTF-8 files, plain or gzipped, and examples as columns of one length.

JSON can escape a half of a surrogate pair ("\\ud800") that UTF-8 cannot encode. A tokenizer sees
three broken bytes where Python counts one code point, so every offset behind a lone surrogate would
be wrong. Labelled data with offsets are therefore read without them.

Source: the Unicode Standard, section 3.9, D92 (UTF-8 holds no surrogates); RFC 8259, section 8.2.
"""

import dataclasses
import gzip
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Self

GZIP = ".gz"
_CONVERT = "Convert the file (from Latin-1: iconv -f latin1 -t utf-8 FILE > NEW)"
_SURROGATE = re.compile("[\ud800-\udfff]")


def is_gzipped(path: str | os.PathLike[str]) -> bool:
    """Returns whether the name of a file ends in .gz."""
    return os.fspath(path).lower().endswith(GZIP)


def open_text(path: str | os.PathLike[str]) -> Any:
    """Opens a file for reading bytes, decompressed where its name ends in .gz."""
    if not isinstance(path, str | Path) and hasattr(path, "open"):  # a `RemoteFile`
        return gzip.open(path.open("rb")) if is_gzipped(path) else path.open("rb")
    return gzip.open(path, "rb") if is_gzipped(path) else open(path, "rb")


def text_lines(
    path: str | os.PathLike[str], stream: Iterable[bytes], errors: str = "strict"
) -> Iterator[str]:
    r"""Yields the lines of a UTF-8 file with their ends, without a byte order mark.

    Only "\n" ends a line: str.splitlines would also split at U+2028 and U+0085 inside a text.
    `stream` holds the bytes, as from `open_text`; `path` is for messages. Raises a ValueError for
    invalid UTF-8, with the line, unless `errors` is "replace", which reads it as U+FFFD; and for
    invalid gzip.
    """
    number = 0
    try:
        for number, line in enumerate(stream, start=1):
            yield line.decode("utf-8-sig" if number == 1 else "utf-8", errors)
    except UnicodeDecodeError as error:
        hint = f"{_CONVERT}."
        if number == 1 and error.object.startswith((b"\xff\xfe", b"\xfe\xff")):
            hint = "It looks like UTF-16: convert the file."
        raise ValueError(
            f"{path}, line {number}: the file must be UTF-8. Received: byte "
            f"0x{error.object[error.start]:02x} ({error.reason}). {hint}"
        ) from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: the file must be gzip data. Received: {error}") from error


def read_text(path: str | os.PathLike[str]) -> str:
    """Reads a whole file, with the errors of `text_lines`."""
    with open_text(path) as stream:
        return "".join(text_lines(path, stream))


@dataclasses.dataclass(frozen=True)
class Columns:
    """The base of examples: frozen dataclasses whose fields are columns, some of which may be None.

    `columns` names those fields; the first is never None. All have `source`, where the examples
    come from, for messages, and most have `lines`, the 1-based line of each example there, and
    `ids`, the examples' own ids as strings, None where there are none.
    """

    columns: ClassVar[tuple[str, ...]]

    def __len__(self) -> int:
        return len(getattr(self, self.columns[0]))

    def __post_init__(self) -> None:
        first, *others = self.columns
        for name in others:
            column = getattr(self, name)
            if column is not None and len(column) != len(self):
                raise ValueError(
                    f"`{name}` must be as long as `{first}`, {len(self)}. Received: "
                    f"{len(column)} items"
                )

    def select(self, indices: Iterable[int]) -> Self:
        """Returns some of the rows, by their 0-based indices in the order of the result.

        Raises:
            ValueError: an index is not that of a row, or is True or False, as those of a mask.
        """
        chosen = []
        for index in indices:
            if getattr(index, "dtype", type(index)) == bool or not 0 <= index < len(self):
                raise ValueError(
                    f"`indices` must be in [0, {len(self)}). Received: {index}; a mask has some by "
                    "np.flatnonzero(mask)"
                )
            chosen.append(int(index))

        def picked(column: Any) -> Any:
            return None if column is None else [column[i] for i in chosen]

        return dataclasses.replace(self, **{x: picked(getattr(self, x)) for x in self.columns})

    def head(self, count: int) -> Self:
        """Returns the first `count` rows; all where there are fewer."""
        if count < 1:
            raise ValueError(f"`count` must be at least 1. Received: count={count}")
        return self.select(range(min(count, len(self))))


def check_different(source: str, ids: Iterable[str], places: Iterable[str]) -> None:
    """Raises a ValueError, which names both places, if an id occurs twice."""
    seen: dict[str, str] = {}
    for id, place in zip(ids, places):
        if id in seen:
            raise ValueError(
                f"{source}, {place}: each id must occur once. Received: {id!r}, which "
                f"{seen[id]} has too"
            )
        seen[id] = place


def without_surrogates(text: str, where: str, errors: str = "strict") -> str:
    """Returns a text that UTF-8 can hold.

    With "strict", a lone surrogate is a ValueError, whose message begins with `where`; with
    "replace" each becomes U+FFFD, so that offsets in code points stay the same.
    """
    found = None if text.isascii() else _SURROGATE.search(text)
    if found is None:
        return text
    if errors == "replace":
        return _SURROGATE.sub("\ufffd", text)
    raise ValueError(
        f"{where}: the value must be text that UTF-8 can hold. Received: a lone surrogate "
        f"{found.group()!r} at code point {found.start()}. Correct the escape."
    )


def cut(text: str, longest: int = 80) -> str:
    """Returns a text for a message, cut where it is long."""
    return text if len(text) <= longest else f"{text[:longest]}..."


def shortened(value: Any) -> str:
    """Returns a JSON value for a message, cut where it is long; "nothing" for None."""
    return "nothing" if value is None else cut(repr(value))

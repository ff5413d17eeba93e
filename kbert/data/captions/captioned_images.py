"""Images with captions, several each, from a table and a folder of image files.

Source of the layout: Hodosh, Young and Hockenmaier, "Framing Image Description as a Ranking Task"
(2013): Flickr8k, in the forms in which it is passed on: `captions.txt`, a CSV file with the header
`image,caption`, and `Flickr8k.token.txt`, whose lines are `name.jpg#0`, a tab and a caption.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Self

from kbert.data.tables.columns import Columns, open_text, shortened
from kbert.data.tables.rows import format_by_name
from kbert.data.tables.table import Table, read_table

_NUMBER = re.compile(r"#\d+$")
_SHOWN = 5
_FIRST_BYTES = 1 << 16


@dataclass(frozen=True)
class CaptionExamples(Columns):
    """Images with their captions, in the order of their first rows."""

    images: list[str]  # names of the files, all different, relative to `folder`
    # the captions of each image, at least one: references, of which each is right; None where they
    # were not read
    captions: list[list[str]] | None
    lines: list[int]  # of the first row of each image
    folder: str
    source: str

    columns = ("images", "captions", "lines")

    @property
    def paths(self) -> list[Path]:
        """The image files."""
        return [Path(self.folder, name) for name in self.images]

    @property
    def pairs(self) -> list[tuple[int, str]]:
        """The captions one by one, each with the row of its image, as training takes them."""
        return [(row, text) for row, each in enumerate(self.captions or ()) for text in each]

    def split(self, sizes: Sequence[int]) -> list[Self]:
        """Splits the images into parts, in the order of their names.

        The order does not depend on that of the file. Images beyond the sizes are in no part, as
        in the usual split of Flickr8k.

        Args:
            sizes: the number of images of each part, at least 1.
        """
        if not sizes or any(isinstance(s, bool) or not isinstance(s, int) or s < 1 for s in sizes):
            raise ValueError(
                f"`sizes` must be whole numbers, at least 1. Received: sizes={sizes!r}"
            )
        if sum(sizes) > len(self):
            raise ValueError(
                f"`sizes` must add up to the number of images at most. Received: sizes={sizes!r} "
                f"for {len(self)} images of {self.source}"
            )
        order = sorted(range(len(self)), key=lambda row: self.images[row])
        starts = [sum(sizes[:part]) for part in range(len(sizes))]
        return [self.select(order[start : start + s]) for start, s in zip(starts, sizes)]


def read_captions(
    path: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    image: str | int = "image",
    caption: str | int = "caption",
    *,
    quoting: bool | str | None = None,
    labeled: bool = True,
) -> CaptionExamples:
    """Reads images and captions from a file of `read_table`, a row a caption, in any order.

    Names such as `a.jpg#0`, with the number of the caption in each row, lose it. Raises a
    FileNotFoundError that lists the image files that are missing, and a ValueError that lists the
    lines of empty captions, or for names that leave the folder.

    Args:
        path: the table: CSV, TSV, JSON Lines or JSON, plain or gzipped. A JSON value may be a list
            of captions. A file with another ending, as `captions.txt`, is TSV where its first line
            has a tab, else CSV.
        folder: the images' folder.
        image: column of the names, as a path below `folder`; by name, or by 0-based index where no
            line names the columns.
        caption: column of the captions, likewise.
        quoting: see `read_table`.
        labeled: whether captions are read; False leaves the column alone.
    """
    by_index = isinstance(image, int) or isinstance(caption, int)
    table = read_table(path, format=_format(path), header=not by_index, quoting=quoting)
    names = _names(table, image)
    texts = _texts(table, caption) if labeled else [[] for _ in names]
    captions: dict[str, list[str]] = {}
    lines: dict[str, int] = {}
    for name, each, line in zip(names, texts, table.lines):
        captions.setdefault(name, []).extend(each)
        lines.setdefault(name, line)
    examples = CaptionExamples(
        images=list(captions),
        captions=list(captions.values()) if labeled else None,
        lines=list(lines.values()),
        folder=os.fspath(folder),
        source=table.source,
    )
    _check_files(examples)
    return examples


def _format(path: str | os.PathLike[str]) -> str | None:
    """Returns the format of a file whose name does not tell it, by its first line."""
    if not Path(path).exists():
        raise FileNotFoundError(f"`path` must be a file. Received: {os.fspath(path)!r}")
    if format_by_name(path) is not None or not Path(path).is_file():
        return None
    with open_text(path) as stream:
        return "tsv" if b"\t" in stream.readline(_FIRST_BYTES) else "csv"


def _names(table: Table, column: str | int) -> list[str]:
    names = table.texts(column)
    for row, name in enumerate(names):
        parts = PurePosixPath(name)
        if not name.strip() or parts.is_absolute() or ".." in parts.parts or "\0" in name:
            raise ValueError(
                f"{table.place(row, column)}: the image must be a name below its folder. Received: "
                f"{shortened(name)}"
            )
    if all(_NUMBER.search(name) for name in names):
        names = [_NUMBER.sub("", name) for name in names]
    return names


def _texts(table: Table, column: str | int) -> list[list[str]]:
    """Returns the captions of each row, one, or as many as a JSON list has."""
    found: list[list[str]] = []
    empty = []
    for row, value in enumerate(table.values(column)):
        each: Any = value if isinstance(value, list) else [value]
        if not all(isinstance(text, str) for text in each):
            raise ValueError(
                f"{table.place(row, column)}: the caption must be a string, or a list of strings. "
                f"Received: {shortened(value)}"
            )
        if not each or not all(text.strip() for text in each):
            empty.append(str(table.lines[row]))
        found.append(each)
    if empty:
        raise ValueError(
            f"{table.source}: captions must not be empty. Received: {len(empty)} empty ones, on "
            f"{'line' if len(empty) == 1 else 'lines'} {_some(empty)}"
        )
    return found


def _check_files(examples: CaptionExamples) -> None:
    if not Path(examples.folder).is_dir():
        raise FileNotFoundError(
            f"`folder` must be the folder of the images. Received: {examples.folder!r}, which is "
            "none"
        )
    missing = [
        f"{name!r} (line {line})"
        for name, line, path in zip(examples.images, examples.lines, examples.paths)
        if not path.is_file()
    ]
    if missing:
        raise FileNotFoundError(
            f"{examples.source}: every image must be a file in {examples.folder!r}. Received: "
            f"{len(missing)} of {len(examples)} that are missing: {_some(missing)}"
        )


def _some(items: list[str]) -> str:
    return ", ".join(items[:_SHOWN]) + (", ..." if len(items) > _SHOWN else "")

"""Sentences and their translations, the form that training and prediction take: reading and
filters.

Filters leave out pairs that teach little: empty ones, long ones, unlikely ones. Source: the limits
are those of `clean-corpus-n.perl` of Moses: length, and the ratio of lengths.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kbert.data.tables.columns import Columns, open_text, text_lines
from kbert.data.tables.table import read_table


@dataclass(frozen=True)
class ParallelText(Columns):
    """Sentences with their translations; `targets` is None where there are none."""

    sources: list[str]
    targets: list[str] | None
    source: str
    lines: list[int]

    columns = ("sources", "targets", "lines")


def read_parallel(
    source_path: str | os.PathLike[str],
    target_path: str | os.PathLike[str] | None = None,
) -> ParallelText:
    r"""Reads two text files of which line n of one is the translation of line n of the other.

    Only "\n" and "\r\n" end a line, as for `wc -l`: U+2028, U+0085 and a lone "\r" are characters
    of a sentence. Lines may be of any length. Empty lines stay empty strings, so that the lines of
    both files match; `filter_parallel` leaves them out. A ValueError says that the files have
    different numbers of lines, are empty, or are not UTF-8 (with file and line) or not gzip.

    Args:
        source_path: UTF-8 text, a sentence a line (a byte order mark is accepted), or one with .gz
            at the end of its name.
        target_path: the translations, likewise; None where there are none.
    """
    _check_file("source_path", source_path)
    if target_path is not None:
        _check_file("target_path", target_path)
    sources = _lines(source_path)
    names = os.fspath(source_path)
    targets = None
    if target_path is not None:
        targets = _lines(target_path)
        names = f"{names} and {os.fspath(target_path)}"
        if len(sources) != len(targets):
            raise ValueError(
                "The files of sentences and translations must have the same number of lines. "
                f"Received: {len(sources)} lines in {os.fspath(source_path)}, {len(targets)} lines "
                f"in {os.fspath(target_path)}"
            )
    if not sources:
        raise ValueError(f"{names}: there must be sentences. Received: empty files")
    return ParallelText(sources, targets, names, list(range(1, len(sources) + 1)))


def read_parallel_tsv(
    path: str | os.PathLike[str],
    columns: Sequence[str | int | None] = ("source", "target"),
    *,
    quoting: bool | str | None = None,
) -> ParallelText:
    """Reads sentences and their translations from a file of `read_table`.

    `columns` are those of sentences and translations, by names in the first line, or by 0-based
    indices where no line names them; the second is None where there are no translations. `quoting`
    is that of `read_table`. An empty field stays an empty string. A ValueError names file and line.
    """
    source, target = columns if len(columns) == 2 else (None, None)
    if isinstance(columns, str) or source is None:
        raise ValueError(
            "`columns` must be the column of the sentences and that of the translations (or None). "
            f"Received: columns={columns!r}"
        )
    _check_file("path", path)
    by_index = any(isinstance(column, int) for column in columns)
    table = read_table(path, header=not by_index, quoting=quoting)
    return ParallelText(
        sources=table.texts(source),
        targets=None if target is None else table.texts(target),
        source=table.source,
        lines=table.lines,
    )


def _check_file(argument: str, path: str | os.PathLike[str]) -> None:
    # No `is_file`: a pipe, such as the shell's <(zcat ...), can be read as well.
    if not Path(path).exists() or Path(path).is_dir():
        raise FileNotFoundError(
            f"`{argument}` must be a file. Received: {argument}={os.fspath(path)!r}"
            f"{', which is a folder' if Path(path).is_dir() else ', which does not exist'}"
        )


def _lines(path: str | os.PathLike[str]) -> list[str]:
    with open_text(path) as stream:
        return [x.removesuffix("\n").removesuffix("\r") for x in text_lines(path, stream)]


# Lines that a report keeps for each reason.
SHOWN_LINES = 10

_TEXTS = {
    "empty_both": "empty on both sides",
    "empty_source": "without a source sentence",
    "empty_target": "without a target sentence",
    "too_long": "too long",
    "ratio": "of too different lengths",
}


@dataclass(frozen=True)
class LeftOut:
    """Pairs that were left out for one reason: their number, and the first of their lines."""

    count: int
    lines: list[int]


@dataclass(frozen=True)
class FilterReport:
    """Report of a filter on `total` pairs. `str()` has a line of the counts, and one for each
    reason.
    """

    source: str
    total: int
    # int64 (n,), indices of the kept pairs, ascending, with which whatever belongs to the pairs,
    # such as their tokens, can be filtered likewise
    kept: np.ndarray
    # the pairs left out by reason: "empty_both", "empty_source", "empty_target", "too_long",
    # "ratio". A pair counts once, for the first reason that holds; reasons that never held are
    # absent
    left_out: dict[str, LeftOut]

    def __str__(self) -> str:
        head = f"{self.source}: {len(self.kept)} of {self.total} sentence pairs kept"
        parts = [
            f"{found.count} {_TEXTS[reason]} (line{'s' * (len(found.lines) > 1)} "
            f"{', '.join(map(str, found.lines))}"
            f"{', ...' if found.count > len(found.lines) else ''})"
            for reason, found in self.left_out.items()
        ]
        return "\n".join([head, *(f"  left out: {part}" for part in parts)])


def filter_parallel(
    examples: ParallelText,
    source_lengths: np.ndarray | None = None,
    target_lengths: np.ndarray | None = None,
    *,
    max_length: int | None = None,
    max_ratio: float | None = None,
) -> tuple[ParallelText, FilterReport]:
    """Leaves out pairs by emptiness, length and ratio of lengths; the others keep their order.

    A side of white space only, or of length 0, is empty.

    Args:
        source_lengths: int (n,), length of each sentence, in tokens or any other unit; needed for
            `max_length` and `max_ratio`.
        target_lengths: int (n,), the same of the translations; needed where there are any.
        max_length: pairs with a longer side are left out; None for any length.
        max_ratio: pairs are left out where one side is more than this many times as long as the
            other, at least 1; None for any ratio.
    """
    _check(examples, source_lengths, target_lengths, max_length, max_ratio)
    total = len(examples)
    empty_source = _empty(examples.sources, source_lengths)
    empty_target = np.zeros(total, bool)
    if examples.targets is not None:
        empty_target = _empty(examples.targets, target_lengths)
    reasons = {
        "empty_both": empty_source & empty_target,
        "empty_source": empty_source,
        "empty_target": empty_target,
    }
    sides = [np.asarray(x) for x in (source_lengths, target_lengths) if x is not None]
    if max_length is not None:
        reasons["too_long"] = np.max(sides, axis=0, initial=0) > max_length
    if max_ratio is not None:
        longer, shorter = np.maximum(*sides), np.minimum(*sides)
        # A product, so that there is no division by a length of 0.
        reasons["ratio"] = longer > max_ratio * shorter
    kept = np.ones(total, bool)
    left_out = {}
    for reason, holds in reasons.items():
        found = np.flatnonzero(holds & kept)
        kept &= ~holds
        if len(found):
            lines = [examples.lines[i] for i in found[:SHOWN_LINES]]
            left_out[reason] = LeftOut(len(found), lines)
    indices = np.flatnonzero(kept)
    chosen = examples if len(indices) == total else examples.select(indices)
    return chosen, FilterReport(examples.source, total, indices, left_out)


def _empty(texts: list[str], lengths: np.ndarray | None) -> np.ndarray:
    blank = np.array([not text.strip() for text in texts], bool)
    # A tokenizer may leave nothing of a text of control characters.
    return blank if lengths is None else blank | (np.asarray(lengths) == 0)


def _check(
    examples: ParallelText,
    source_lengths: np.ndarray | None,
    target_lengths: np.ndarray | None,
    max_length: int | None,
    max_ratio: float | None,
) -> None:
    if max_length is not None and max_length < 1:
        raise ValueError(f"`max_length` must be at least 1. Received: max_length={max_length}")
    if max_ratio is not None and not max_ratio >= 1:
        raise ValueError(f"`max_ratio` must be at least 1. Received: max_ratio={max_ratio}")
    if max_ratio is not None and examples.targets is None:
        raise ValueError(
            "`max_ratio` must be None for sentences without translations. Received: "
            f"max_ratio={max_ratio}"
        )
    limit = "max_length" if max_length is not None else "max_ratio"
    is_needed = max_length is not None or max_ratio is not None
    for name, lengths, texts in (
        ("source_lengths", source_lengths, examples.sources),
        ("target_lengths", target_lengths, examples.targets),
    ):
        if lengths is None:
            if is_needed and texts is not None:
                raise ValueError(f"`{name}` must be given with `{limit}`. Received: {name}=None")
            continue
        if texts is None:
            raise ValueError(
                f"`{name}` must be None for sentences without translations. Received: "
                f"{np.size(lengths)} lengths"
            )
        if np.shape(lengths) != (len(texts),):
            raise ValueError(
                f"`{name}` must have one length a pair, {len(texts)} of them. Received: shape "
                f"{np.shape(lengths)}"
            )

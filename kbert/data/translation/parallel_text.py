"""Sentences and their translations, the form that training and prediction take."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kbert.data.tables.columns import Columns
from kbert.data.tables.table import read_table
from kbert.data.tables.text_files import open_text, text_lines


@dataclass(frozen=True)
class ParallelText(Columns):
    """Sentences with their translations.

    Attributes:
        sources: sentences of the language to translate from.
        targets: their translations; None where there are only sentences to translate.
        source: where the sentences come from, for messages.
        lines: 1-based line of each sentence in its file.
    """

    sources: list[str]
    targets: list[str] | None
    source: str
    lines: list[int]

    columns = ("sources", "targets", "lines")


def read_parallel(
    source_path: str | os.PathLike[str],
    target_path: str | os.PathLike[str] | None = None,
    *,
    encoding_errors: str = "strict",
) -> ParallelText:
    r"""Reads two text files of which line n of one is the translation of line n of the other.

    Only "\n" and "\r\n" end a line, as for `wc -l`: U+2028, U+0085 and a lone "\r" are characters
    of a sentence. Lines may be of any length.

    Args:
        source_path: UTF-8 text, a sentence a line (a byte order mark is accepted), or one with
            .gz at the end of its name.
        target_path: the translations, likewise; None where there are none.
        encoding_errors: "strict", or "replace" to read U+FFFD for bytes that are not UTF-8.

    Returns:
        `ParallelText`. Empty lines stay empty strings, so that the lines of both files match;
        `kbert.data.translation.parallel_filters.filter_parallel` leaves them out.

    Raises:
        ValueError: the files have different numbers of lines, are empty, or are not UTF-8 (the
            message names file and line) or not gzip.
        FileNotFoundError: there is no such file.
    """
    _check_file("source_path", source_path)
    if target_path is not None:
        _check_file("target_path", target_path)
    sources = _lines(source_path, encoding_errors)
    names = os.fspath(source_path)
    targets = None
    if target_path is not None:
        targets = _lines(target_path, encoding_errors)
        names = f"{names} and {os.fspath(target_path)}"
        if len(sources) != len(targets):
            raise ValueError(
                "`source_path` and `target_path` must have the same number of lines. Received: "
                f"{len(sources)} lines in {os.fspath(source_path)}, {len(targets)} lines in "
                f"{os.fspath(target_path)}"
            )
    if not sources:
        raise ValueError(f"{names}: there must be sentences. Received: empty files")
    return ParallelText(sources, targets, names, list(range(1, len(sources) + 1)))


def read_parallel_tsv(
    path: str | os.PathLike[str],
    columns: Sequence[str | int | None] = ("source", "target"),
    *,
    header: bool | None = None,
    format: str | None = None,
    quoting: bool | str | None = None,
    encoding_errors: str = "strict",
    malformed_rows: str = "error",
) -> ParallelText:
    """Reads sentences and their translations from a TSV file, a CSV file or JSON Lines.

    Args:
        path: the file, UTF-8, or one with .gz at the end of its name.
        columns: the columns of sentences and translations, by names in the first line or by
            0-based indices; None as the second where there are no translations.
        header: whether the first line names the columns. None: unless they are given by index.
        format: "tsv", "csv", "jsonl" or "json"; None takes it from the name.
        quoting: whether fields may be quoted. None: in CSV, not in TSV.
        encoding_errors: "strict", or "replace" to read U+FFFD for bytes that are not UTF-8.
        malformed_rows: "error", or "skip" to leave out rows of another width, with a warning.

    Returns:
        `ParallelText`. An empty field stays an empty string; blank lines are left out.

    Raises:
        ValueError: the file or a row is wrong, or has no such columns; the message names file and
            line.
        FileNotFoundError: there is no such file.
    """
    source, target = columns if len(columns) == 2 else (None, None)
    if isinstance(columns, str) or source is None:
        raise ValueError(
            "`columns` must be the column of the sentences and that of the translations (or None). "
            f"Received: columns={columns!r}"
        )
    _check_file("path", path)
    by_index = any(isinstance(column, int) for column in columns)
    table = read_table(
        path,
        format=format,
        header=not by_index if header is None else header,
        quoting=quoting,
        encoding_errors=encoding_errors,
        malformed_rows=malformed_rows,
    )
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


def _lines(path: str | os.PathLike[str], encoding_errors: str) -> list[str]:
    with open_text(path) as stream:
        lines = text_lines(path, stream, encoding_errors)
        return [line.removesuffix("\n").removesuffix("\r") for line in lines]

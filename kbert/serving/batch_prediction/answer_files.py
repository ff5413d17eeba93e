"""Files of rows with their answers, written block by block so that a stop loses one block at most.

Each block is written atomically to a file of its own in a hidden folder beside the output; when all
are complete, they are joined under a hidden name, which is then renamed. A stopped run is resumed,
if it has the same input and the same model.
"""

import csv
import gzip
import io
import json
import logging
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kbert.serving.batch_prediction.answer_values import (
    PREFIX,
    cell_text,
    json_text,
    parquet_column,
)
from kbert.serving.batch_prediction.row_files import Block, file_format, pyarrow
from kbert.storage.files import file_lock, write_atomically

logger = logging.getLogger(__name__)
_WAITING = "Another run is writing %s; this one waits for it."

_ABOUT = "about.json"
_COLUMNS = "columns.json"
_LOCK = "lock"
_WHOLE = "whole"


def answer_columns(names: Iterable[str], taken: Iterable[str]) -> dict[str, str]:
    """Returns the column of each answer: its name, with "predicted_" before it where that is taken.

    As often as needed: the output of one model may be the input of the next.
    """
    taken = set(taken)
    columns = {}
    for name in names:
        column = name
        while column in taken:
            column = PREFIX + column
        columns[name] = column
        taken.add(column)
    return columns


class AnswerFile:
    """The finished blocks of an output, in a folder, and the writer of the next."""

    def __init__(self, folder: Path, output: Path) -> None:
        self._folder = folder
        self._output = output
        self._kind, self._is_gzipped = file_format(output, "--output")

    def has(self, number: int) -> bool:
        """Returns whether a block is finished."""
        return self._part(number).is_file()

    def write(self, block: Block, answers: Sequence[Mapping[str, Any]]) -> None:
        """Writes the rows of a block, each with its answer, name -> value, if the columns fit."""
        columns = self._columns(block, answers)
        named = columns["answers"]
        rows = []
        for row, answer, place in zip(block.rows, answers, block.places, strict=True):
            self._check(row, columns, place)
            rows.append({**row, **{named[key]: value for key, value in answer.items()}})
        names = [*columns["input"], *named.values()]
        if self._kind == "parquet":
            data = self._parquet(block, rows, names)
        else:
            data = _text(self._kind, rows, names, block.number == 0).encode("utf-8")
            data = gzip.compress(data, mtime=0) if self._is_gzipped else data
        write_atomically(self._part(block.number), data)

    def join(self, count: int) -> None:
        """Joins the first `count` blocks to the output, and removes them."""
        parts = [self._part(number) for number in range(count)]
        # In the folder, so that the rest of a killed process is removed with the blocks.
        whole = self._folder / _WHOLE
        whole.unlink(missing_ok=True)
        try:
            if self._kind == "parquet":
                parquet = pyarrow("pyarrow.parquet")
                schema = parquet.read_schema(parts[0])
                with parquet.ParquetWriter(whole, schema) as writer:
                    for part in parts:
                        writer.write_table(parquet.read_table(part).cast(schema))
            else:
                with whole.open("xb") as file:
                    for part in parts:
                        with part.open("rb") as one:
                            shutil.copyfileobj(one, file)
            descriptor = os.open(whole, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
            os.replace(whole, self._output)
        finally:
            whole.unlink(missing_ok=True)
        shutil.rmtree(self._folder, ignore_errors=True)  # a newcomer may just make its lock there

    def _part(self, number: int) -> Path:
        return self._folder / f"{number:09d}"

    def _columns(self, block: Block, answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Returns the columns of the first block: of the input, and answer -> its column."""
        file = self._folder / _COLUMNS
        if not file.is_file():
            found = list(dict.fromkeys(name for answer in answers for name in answer))
            named = answer_columns(found, block.columns)
            content = {"input": block.columns, "answers": named}
            write_atomically(file, json.dumps(content, ensure_ascii=True))
        return json.loads(file.read_text(encoding="utf-8"))

    def _check(self, row: Mapping[str, Any], columns: Mapping[str, Any], place: str) -> None:
        """Raises a ValueError if a row has a column that the output cannot have."""
        taken = set(columns["answers"].values())
        is_open = self._kind == "jsonl"
        new = [n for n in row if n in taken or not (is_open or n in columns["input"])]
        if new:
            why = "which is that of an answer" if new[0] in taken else "which the first rows lack"
            raise ValueError(
                f"--input, {place}: a row must have the columns of the first rows. Received: "
                f"{new[0]!r}, {why}"
            )

    def _parquet(self, block: Block, rows: list[dict[str, Any]], names: list[str]) -> bytes:
        arrow, parquet = pyarrow("pyarrow"), pyarrow("pyarrow.parquet")
        first = self._part(0)
        known = parquet.read_schema(first) if block.number and first.is_file() else block.schema
        arrays, fields = [], []
        for name in names:
            there = known is not None and name in known.names
            field = known.field(name) if there else None
            array, field = parquet_column(block, name, [row.get(name) for row in rows], field)
            arrays.append(array)
            fields.append(field)
        stream = io.BytesIO()
        parquet.write_table(arrow.table(arrays, schema=arrow.schema(fields)), stream)
        return stream.getvalue()


@contextmanager
def answer_file(output: str | os.PathLike[str], made_of: Mapping[str, Any]) -> Iterator[AnswerFile]:
    """Yields the file of answers to write, with the blocks of an earlier run.

    `made_of` has what the answers depend on, by name, in JSON types: the ValueError says which of
    it has changed since a run was stopped. Neither may the output exist, nor its folder be missing.
    """
    check_output(output)
    path = Path(os.path.abspath(output))
    folder = path.with_name(f".{path.name}.answers")
    with file_lock(folder / _LOCK, lambda: logger.warning(_WAITING, output)):
        try:
            check_output(output)  # another run may just have finished
            _begin(folder, made_of, output)
            yield AnswerFile(folder, path)
        except BaseException:
            if not _has_blocks(folder):
                shutil.rmtree(folder, ignore_errors=True)
            raise


def _begin(folder: Path, made_of: Mapping[str, Any], output: str | os.PathLike[str]) -> None:
    """Writes what answers depend on into a new folder, or compares it with that of a stopped run.

    A ValueError says what has changed.
    """
    about = folder / _ABOUT
    wanted = json.loads(json.dumps(made_of))
    # An earlier run without a finished block leaves nothing to resume.
    if not about.is_file() or not _has_blocks(folder):
        (folder / _COLUMNS).unlink(missing_ok=True)
        write_atomically(about, json.dumps(wanted, indent=1))
    found = json.loads(about.read_text(encoding="utf-8"))
    # A part has a fact that the whole has not, and the other way round.
    changed = [key for key in {**wanted, **found} if found.get(key) != wanted.get(key)]
    if changed:
        raise ValueError(
            f"`--output` must be gone on with as it was begun. Received: another "
            f"{' and another '.join(changed)} than that of the stopped run, whose answers lie "
            f"in {Path(output).with_name(folder.name)}: remove that folder to begin anew"
        )


def _has_blocks(folder: Path) -> bool:
    return folder.is_dir() and any(part.name.isdecimal() for part in folder.iterdir())


def check_output(output: str | os.PathLike[str]) -> None:
    """Raises an error if a file is there already, or its folder is not."""
    if not Path(os.path.abspath(output)).parent.is_dir():
        raise FileNotFoundError(f"`--output` must be in a folder that exists. Received: {output}")
    if os.path.lexists(output):
        raise FileExistsError(f"`--output` must not exist yet. Received: {output}")


def _text(kind: str, rows: list[dict[str, Any]], names: list[str], is_first: bool) -> str:
    """Formats rows as text; the first block of a file with a header begins with it."""
    if kind == "jsonl":
        return "".join(f"{json_text(row)}\n" for row in rows)
    table = [[cell_text(row.get(name)) for name in names] for row in rows]
    if is_first and names:  # an empty file has no header
        table.insert(0, names)
    if kind == "tsv":
        return "".join("\t".join(map(_on_one_line, cells)) + "\n" for cells in table)
    return "".join(map(_csv_line, table)).encode("utf-8", "replace").decode("utf-8")


def _csv_line(cells: list[str]) -> str:
    stream = io.StringIO(newline="")
    # Python only quotes characters of the line terminator: a lone CR would split the row.
    csv.writer(stream, lineterminator="\r\n").writerow(cells)
    return stream.getvalue().removesuffix("\r\n") + "\n"


def _on_one_line(cell: str) -> str:
    """Replaces tabs and line ends by spaces, as TSV has no quotes."""
    text = cell.translate(dict.fromkeys(map(ord, "\t\n\r"), " "))
    return text.encode("utf-8", "replace").decode("utf-8")

"""Predictions for all rows of a file of any size, in constant memory."""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kbert.data.tables.columns import cut, without_surrogates
from kbert.hints import nearest
from kbert.serving.batch_prediction.answer_files import answer_file, check_output
from kbert.serving.batch_prediction.answer_values import parquet_schema
from kbert.serving.batch_prediction.row_files import (
    BLOCK_ROWS,
    Block,
    file_format,
    pyarrow,
    read_blocks,
)
from kbert.storage.files import sha256_of

# The values of a row for the inputs of a model.
Row = tuple[Any, ...]
_CHOICES = "choices"
_SHOWN = 80


def predict_file(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    inputs: Sequence[str],
    answer: Callable[[list[Row]], list[dict[str, Any]]],
    *,
    columns: Sequence[Sequence[str]] | None = None,
    made_of: Mapping[str, Any],
    block_rows: int = BLOCK_ROWS,
    part: tuple[int, int] = (1, 1),
    check: Callable[[Row, str], None] = lambda row, place: None,
    on_progress: Callable[[float, int], None] = lambda share, rows: None,
) -> int:
    """Answers the rows of a file, block by block, writes them, and returns their number.

    The same call resumes a run that was stopped at any moment, and makes the same bytes.

    Args:
        source: The file; see `kbert.serving.batch_prediction.row_files`.
        output: The file to create, of any of these formats, with the columns of the input and the
            answers.
        inputs: The model's inputs, such as ("text",), which are the names of the columns. The input
            "choices" is a list of texts, in TSV and CSV as JSON.
        answer: Maps the rows of a block, each with a text for each input, to their answers, in
            order; it does the length bucketing itself, and takes rows of several lengths where
            "choices" is an input.
        columns: Alternative names of these columns; the first alternative that exists is used.
        made_of: Further things that the answers depend on, such as a checksum of the model.
        part: Which of how many parts of the file is answered, (1, 1) for all of it. Parts are runs
            of blocks; one after the other they are the file, with the same answers bit by bit.
        check: Called with each row and its place before they are answered; it may raise an error.
        on_progress: Called with the share of the file that is done, 0 to 1, and the rows.

    Raises:
        ValueError: A row is invalid: the message names file, line and what is expected. A stopped
            run has another input or other values in `made_of`. `part` is of more parts than blocks.
    """
    check_files(source, output)
    check_columns(source, columns or [inputs])
    wanted = _blocks_of(source, block_rows, part)
    share = 0.0

    def tell(found: float) -> None:
        nonlocal share
        share = found

    facts = {"input": sha256_of(source), "rows of a block": block_rows, **made_of}
    if part != (1, 1):
        facts["part"] = list(part)
    with answer_file(output, facts) as file:
        rows = count = 0
        for block in _of_part(read_blocks(source, block_rows, tell), wanted, output):
            if not file.has(block.number):
                texts = _texts(block, inputs, columns or [inputs], str(source), check)
                file.write(block, answer(texts) if texts else [])
            rows, count = rows + len(block.rows), count + 1
            on_progress(share, rows)
        file.join(count)
    on_progress(1.0, rows)
    return rows


def check_files(source: str | os.PathLike[str], output: str | os.PathLike[str]) -> None:
    """Checks the names of an input and of its output, before a model is loaded for them."""
    if "parquet" in (file_format(source, "--input")[0], file_format(output, "--output")[0]):
        pyarrow("pyarrow.parquet")
    if not Path(source).is_file():
        raise FileNotFoundError(f"`--input` must be a file. Received: {source}")
    check_output(output)


def check_columns(
    source: str | os.PathLike[str], columns: Sequence[Sequence[str]], hint: str = ""
) -> None:
    """Checks that the first row of a file has the columns of one alternative, as its header has.

    `hint` goes on in the error's sentence: it says what else a user can do.
    """
    block = next(read_blocks(source, 1))
    if not block.rows or any(set(names) <= set(block.columns) for names in columns):
        return
    told = dict.fromkeys(" and ".join(f"`{name}`" for name in names) for names in columns)
    missing = (name for names in columns for name in names if name not in block.columns)
    near = next(filter(None, (nearest(name, block.columns) for name in missing)), "")
    header = file_format(source, "--input")[0] in ("csv", "tsv")
    place = "line 1" if header else block.places[0]
    there = ", ".join(f"`{name}`" for name in block.columns)
    raise ValueError(
        f"{source}, {place}: the file must have the column{'s' * (len(columns[0]) > 1)} "
        f"{' or '.join(told)}, which the model reads{hint}. Received: "
        f"{f'columns {cut(there, 4 * _SHOWN)}' if there else 'nothing'}{'.' * bool(near)}{near}"
    )


def _blocks_of(
    source: str | os.PathLike[str], block_rows: int, part: tuple[int, int]
) -> range | None:
    """Returns the numbers of the blocks of a part, or None for all blocks."""
    index, parts = part
    if not 1 <= index <= parts:
        raise ValueError(
            "`part` must be one of the parts, from 1 to their number. Received: "
            f"part={index}/{parts}"
        )
    if parts == 1:
        return None
    count = sum(1 for _ in read_blocks(source, block_rows))
    if count < parts:
        raise ValueError(
            f"`part` must be of at most as many parts as {source} has blocks of {block_rows:,} "
            f"rows, {count}. Received: part={index}/{parts}"
        )
    return range(count * (index - 1) // parts, count * index // parts)


def _of_part(
    blocks: Iterator[Block], wanted: range | None, output: str | os.PathLike[str]
) -> Iterator[Block]:
    """Yields the blocks of a part, numbered from 0, with the columns of the file's first block.

    For an output in Parquet they have its schema too, so that all parts have the types of the
    whole.
    """
    columns, schema, is_parquet = None, None, file_format(output, "--output")[0] == "parquet"
    for block in blocks:
        if columns is None:
            columns, schema = block.columns, parquet_schema(block) if is_parquet else block.schema
        if wanted is None or block.number in wanted:
            number = block.number - (0 if wanted is None else wanted.start)
            yield replace(block, number=number, columns=columns, schema=schema)


def _texts(
    block: Block,
    inputs: Sequence[str],
    columns: Sequence[Sequence[str]],
    source: str,
    check: Callable[[Row, str], None],
) -> list[Row]:
    """Returns the model's inputs of each row, from the first columns that the block has."""
    rows = []
    there = [names for names in columns if set(names) <= set(block.columns)]
    chosen = (there or list(columns))[0]
    for row, place in zip(block.rows, block.places, strict=True):
        if any(name not in row for name in chosen):
            listed = (", ".join(f"`{n}`" for n in names) for names in there[:1] or columns)
            told = dict.fromkeys(listed)
            raise ValueError(
                f"{source}, {place}: a row must have {' or '.join(told)}, the inputs of the "
                f"model. Received: {', '.join(row)[:_SHOWN] or 'nothing'}"
            )
        texts: list[Any] = []
        for name, column in zip(inputs, chosen, strict=True):
            where = f"{source}, {place}, column `{column}`"
            if name == _CHOICES:
                texts += [_text(one, where) for one in _choices(row[column], where)]
            else:
                texts.append(_text(row[column], where))
        rows.append(tuple(texts))
        check(rows[-1], f"{source}, {place}")
    return rows


def _text(value: Any, where: str) -> Any:
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise ValueError(f"{where}: the value must be text. Received: {str(value)[:_SHOWN]!r}")
    return without_surrogates(value, where, "replace")


def _choices(value: Any, where: str) -> list[Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise ValueError(
                f"{where}: the value must be a JSON list of texts. Received: {value[:_SHOWN]!r}"
            ) from error
    if not isinstance(value, list) or len(value) < 2:
        raise ValueError(
            f"{where}: the value must be a list of two texts or more. "
            f"Received: {str(value)[:_SHOWN]!r}"
        )
    return value

"""Rows of TSV and CSV text, with and without quoting, each with the line where it starts.

Sources: RFC 4180 as Python's `csv` module reads it, for CSV; the files of the GLUE benchmark, for
TSV without quoting.
"""

import csv
import io
import sys
from collections.abc import Iterable, Sequence


def looks_quoted(rows: Iterable[Sequence[str]]) -> bool:
    """Returns whether fields that were split without regard to quotes follow CSV's quoting.

    True when some field holds a doubled quote inside quotes and every field that holds a quote at
    all is enclosed in quotes with its inner quotes doubled. Running text fails this at once.

    Args:
        rows: lists of fields.
    """
    doubled = False
    for row in rows:
        for field in row:
            if '"' not in field:
                continue
            inner = field[1:-1]
            enclosed = len(field) >= 2 and field[0] == '"' and field[-1] == '"'
            if not enclosed or '"' in inner.replace('""', ""):
                return False
            doubled = doubled or '""' in inner
    return doubled


def plain_rows(text: str, delimiter: str) -> tuple[list[list[str]], list[int]]:
    """Splits a text without quoting into rows of fields. Blank lines are left out.

    Args:
        text: the file's text.
        delimiter: the character between fields.

    Returns:
        The rows, and the 1-based line of each.
    """
    # Only "\n" ends a line: str.splitlines would also split at U+2028 and U+0085 inside a text.
    rows, lines = [], []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.endswith("\r"):
            line = line[:-1]
        if line:
            rows.append(line.split(delimiter))
            lines.append(number)
    return rows, lines


def quoted_rows(source: str, text: str, delimiter: str) -> tuple[list[list[str]], list[int]]:
    """Splits a text with CSV's quoting into rows of fields. Blank lines are left out.

    Args:
        source: path of the file, for messages.
        text: the file's text.
        delimiter: the character between fields.

    Returns:
        The rows, and the 1-based line where each starts.

    Raises:
        ValueError: a quoted field is not closed, or has text behind its closing quote.
    """
    rows, lines = [], []
    limit = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    start = 1
    try:
        for row in reader:
            if row:
                rows.append(row)
                lines.append(start)
            start = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f"{source}, line {start}: quoted fields must be closed, with inner quotes doubled. "
            f"Received: {error}"
        ) from error
    finally:
        csv.field_size_limit(limit)
    return rows, lines

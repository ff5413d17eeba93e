"""Tagged sentences in CoNLL columns: one word a line with its tag, a blank line between sentences.

Source: the file format of the CoNLL-2003 shared task (Tjong Kim Sang and De Meulder,
"Introduction to the CoNLL-2003 Shared Task", 2003), and of WNUT-17 with tabs.
"""

import os
import re

from kbert.data.entities.tagged_sentences import TaggedSentences
from kbert.data.tables.text_files import read_text

_DOCUMENT = "-DOCSTART-"
_BLANKS = re.compile("[ \t]+")


def read_conll(
    path: str | os.PathLike[str],
    word_column: int = 0,
    tag_column: int = -1,
    separator: str | None = None,
    *,
    labeled: bool = True,
    encoding_errors: str = "strict",
) -> TaggedSentences:
    """Reads words and tags from columns.

    Lines of only spaces and tabs end a sentence. A line that begins with "-DOCSTART-" also ends
    the document, and is not a sentence. There are no comments: "#" may begin a word.

    Args:
        path: the file, UTF-8 (a byte order mark and "\\r\\n" are accepted), plain or gzipped.
        word_column: 0-based column of the words; negative indices count from the last.
        tag_column: column of the tags, likewise.
        separator: the string between columns; None: any run of spaces and tabs.
        labeled: whether there are tags; False reads the words only.
        encoding_errors: "strict", or "replace" to read U+FFFD for bytes that are not UTF-8.

    Returns:
        `TaggedSentences` with the tags as written; `in_scheme` checks and converts them.

    Raises:
        ValueError: the file has no sentence, a row has another width than the first, a column is
            missing, or a word or tag is empty or white space. The message names file and line.
        FileNotFoundError: there is no such file.
    """
    if separator == "":
        raise ValueError("`separator` must be a character or None. Received: separator=''")
    source = os.fspath(path)
    text = read_text(path, encoding_errors)
    wanted = {"word_column": word_column, "tag_column": tag_column}
    reader = _Reader(source, wanted if labeled else {"word_column": word_column}, separator)
    # Only "\n" ends a line: str.splitlines would also split at U+2028 and U+0085 inside a word.
    for number, line in enumerate(text.split("\n"), start=1):
        reader.take(line, number)
    if not reader.words:
        received = "no row of words" if text.strip() else "an empty file"
        raise ValueError(f"{source}: the file must hold sentences. Received: {received}")
    tags = reader.tags if labeled else None
    return TaggedSentences(reader.words, tags, reader.documents, source, reader.lines)


class _Reader:
    """Takes one line after the other, and holds the sentences so far."""

    def __init__(self, source: str, wanted: dict[str, int], separator: str | None) -> None:
        self.source = source
        self.wanted = wanted
        self.separator = separator
        self.words: list[list[str]] = []
        self.tags: list[list[str]] = []
        self.documents: list[int] = []
        self.lines: list[int] = []
        self.width = 0
        self.first_row = 0
        self.document = 0
        self.within_sentence = False

    def take(self, line: str, number: int) -> None:
        """Takes one line; `number` is 1-based."""
        stripped = line.strip(" \t\r")
        if not stripped or stripped.startswith(_DOCUMENT):
            self.within_sentence = False
            if stripped and self.documents:
                self.document = self.documents[-1] + 1
            return
        row = self._row(line.rstrip("\r"), number)
        if not self.within_sentence:
            self.words.append([])
            self.tags.append([])
            self.documents.append(self.document)
            self.lines.append(number)
            self.within_sentence = True
        self.words[-1].append(self._cell(row, "word_column", "word", number))
        if "tag_column" in self.wanted:
            self.tags[-1].append(self._cell(row, "tag_column", "tag", number))

    def _row(self, line: str, number: int) -> list[str]:
        if self.separator is None:
            row = _BLANKS.split(line.strip(" \t"))
        else:
            row = line.split(self.separator)
        if not self.width:
            self.width, self.first_row = len(row), number
            self._check_columns(number)
        if len(row) != self.width:
            raise ValueError(
                f"{self.source}, line {number}: each row must have {self.width} columns, as line "
                f"{self.first_row} has. Received: {len(row)} columns ({line[:80]!r})"
            )
        return row

    def _check_columns(self, number: int) -> None:
        for name, column in self.wanted.items():
            if not -self.width <= column < self.width:
                raise ValueError(
                    f"{self.source}, line {number}: `{name}` must be one of the row's {self.width} "
                    f"columns. Received: {name}={column}"
                )
        if len({column % self.width for column in self.wanted.values()}) < len(self.wanted):
            shown = ", ".join(f"{name}={column}" for name, column in self.wanted.items())
            raise ValueError(
                f"{self.source}, line {number}: `tag_column` must be another column than "
                f"`word_column`. Received: {shown} for rows of {self.width} columns"
            )

    def _cell(self, row: list[str], name: str, meaning: str, number: int) -> str:
        cell = row[self.wanted[name]]
        if not cell.strip():
            raise ValueError(
                f"{self.source}, line {number}: the {meaning} must not be empty or white space. "
                f"Received: {cell!r}"
            )
        return cell

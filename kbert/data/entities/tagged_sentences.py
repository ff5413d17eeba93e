"""Sentences of tagged words, the form of examples that training on tags takes, and their CoNLL
columns.

Those have one word a line with its tag, and a blank line between sentences.

Source: the file format of the CoNLL-2003 shared task (Tjong Kim Sang and De Meulder, "Introduction
to the CoNLL-2003 Shared Task", 2003), and of WNUT-17 with tabs.
"""

import os
import re
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

from kbert.data.entities.tag_schemes import convert, detect_scheme, impossible_tag, parse_tag
from kbert.data.tables.columns import Columns, read_text


@dataclass(frozen=True)
class TaggedSentences(Columns):
    """Sentences in words, with a tag for each word."""

    words: list[list[str]]  # the words of each sentence, at least one
    tags: list[list[str]] | None  # the tag of each word; None for untagged sentences
    documents: list[int]  # 0-based number of the document that each sentence belongs to
    source: str
    lines: list[int]  # 1-based line of each sentence's first word, or number of its row
    # whether each word has a line of its own; otherwise all share the row's
    is_line_a_word: bool = True

    columns = ("words", "tags", "documents", "lines")

    def __post_init__(self) -> None:
        super().__post_init__()
        for words, tags, line in zip(self.words, self.tags or (), self.lines):
            if len(words) != len(tags):
                raise ValueError(
                    f"{self.source}, line {line}: each of the sentence's {len(words)} words must "
                    f"have a tag. Received: {len(tags)} tags"
                )

    @property
    def texts(self) -> list[str]:
        """The sentences as texts: their words joined by spaces."""
        return [" ".join(words) for words in self.words]

    def line_of(self, sentence: int, word: int) -> int:
        """Returns the 1-based line of a word, by 0-based indices of its sentence and in it."""
        return self.lines[sentence] + (word if self.is_line_a_word else 0)

    @property
    def labels(self) -> list[str]:
        """The entity types of the tags, sorted; none for untagged sentences."""
        tags = {tag for sentence in self.tags or () for tag in sentence}
        return sorted({parse_tag(tag).type for tag in tags if tag != "O"})


def in_scheme(sentences: TaggedSentences, target: str = "bio") -> TaggedSentences:
    """Converts the tags of sentences to one scheme, after a check of every sentence.

    `target` is "bio", "iob1" or "iobes"; `detect_scheme` finds the scheme of the tags. A
    ValueError, with file, sentence and line, says that a tag is invalid or not allowed at its
    position.
    """
    if sentences.tags is None:
        raise ValueError(f"{sentences.source}: the sentences must have tags. Received: none")
    _check_tags(sentences, sentences.tags)
    scheme = detect_scheme(sentences.tags)
    tags = []
    for i, sentence in enumerate(sentences.tags):
        wrong = impossible_tag(sentence, scheme)
        if wrong is not None:
            line = sentences.line_of(i, wrong[0])
            raise ValueError(
                f"{sentences.source}, line {line} (sentence {i + 1}, word {wrong[0] + 1}): "
                f"{wrong[1]}. Received: {sentence[wrong[0]]!r} in the scheme {scheme}. "
                "Correct the tags of this sentence."
            )
        tags.append(convert(sentence, scheme, target))
    return replace(sentences, tags=tags)


def _check_tags(sentences: TaggedSentences, tags: list[list[str]]) -> None:
    """Raises the errors of `parse_tag` with file and line; each distinct tag is parsed once."""
    good: set[str] = set()
    for i, sentence in enumerate(tags):
        for word, tag in enumerate(sentence):
            if tag in good:
                continue
            try:
                parse_tag(tag)
            except ValueError as error:
                line = sentences.line_of(i, word)
                raise ValueError(f"{sentences.source}, line {line}: {error}") from error
            good.add(tag)


_DOCUMENT = "-DOCSTART-"
_BLANKS = re.compile("[ \t]+")


class _Row(NamedTuple):
    number: int
    line: str
    cells: list[str]


def read_conll(
    path: str | os.PathLike[str], tag_column: int = -1, *, labeled: bool = True
) -> TaggedSentences:
    r"""Reads words and tags from columns, which spaces and tabs separate.

    Lines of only spaces and tabs end a sentence. A line that begins with "-DOCSTART-" also ends the
    document, and is not a sentence. There are no comments: "#" may begin a word. Tags are returned
    as written; `in_scheme` checks and converts them. A ValueError names file and line.

    Args:
        path: the file, UTF-8 (a byte order mark and "\r\n" are accepted), plain or gzipped.
        tag_column: 0-based column of the tags; negative indices count from the last. The words are
            in the first column.
        labeled: whether there are tags; False reads the words only.
    """
    source = os.fspath(path)
    text = read_text(path)
    sentences, documents = _sentences(source, text)
    if not sentences:
        received = "no row of words" if text.strip() else "an empty file"
        raise ValueError(f"{source}: the file must hold sentences. Received: {received}")
    first = sentences[0][0]
    if labeled:
        _check_column(source, first, tag_column)
    for row in chain.from_iterable(sentences):
        _check_row(source, first, row, tag_column if labeled else None)
    words = [[row.cells[0] for row in rows] for rows in sentences]
    tags = [[row.cells[tag_column] for row in rows] for rows in sentences] if labeled else None
    return TaggedSentences(words, tags, documents, source, [rows[0].number for rows in sentences])


def _sentences(source: str, text: str) -> tuple[list[list[_Row]], list[int]]:
    """Returns the rows of each sentence, and the number of its document."""
    sentences: list[list[_Row]] = []
    documents: list[int] = []
    rows: list[_Row] = []
    document = 0
    # Only "\n" ends a line: str.splitlines would also split at U+2028 and U+0085 inside a word.
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = line.strip(" \t\r")
        if not stripped or stripped.startswith(_DOCUMENT):
            rows = []
            if stripped and documents:
                document = documents[-1] + 1
            continue
        if not rows:
            sentences.append(rows)
            documents.append(document)
        line = line.rstrip("\r")
        if "\r" in line:
            raise ValueError(
                f"{source}, line {number}: lines must end in a line feed, with or without a "
                "carriage return before it. Received: carriage returns alone"
            )
        rows.append(_Row(number, line, _BLANKS.split(line.strip(" \t"))))
    return sentences, documents


def _check_column(source: str, first: _Row, tag_column: int) -> None:
    width = len(first.cells)
    if not -width <= tag_column < width:
        raise ValueError(
            f"{source}, line {first.number}: the column of the tags must be one of {width}. "
            f"Received: {tag_column}"
        )
    if tag_column % width == 0:
        raise ValueError(
            f"{source}, line {first.number}: a row must have a word and, in another column, its "
            f"tag, with blanks or tabs between. Received: {first.line[:80]!r}, for the tag in "
            f"column {tag_column} of {width}"
        )


def _check_row(source: str, first: _Row, row: _Row, tag_column: int | None) -> None:
    width = len(first.cells)
    if len(row.cells) != width:
        raise ValueError(
            f"{source}, line {row.number}: each row must have {width} columns, as line "
            f"{first.number} has. Received: {len(row.cells)} columns ({row.line[:80]!r})"
        )
    for name, column in (("word", 0), ("tag", tag_column)):
        if column is not None and not row.cells[column].strip():
            raise ValueError(
                f"{source}, line {row.number}: the {name} must not be empty or white space. "
                f"Received: {row.cells[column]!r}"
            )

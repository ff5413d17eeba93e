"""Texts with entities marked by character offsets, one JSON object a line, and as tagged words."""

import functools
import os
import re
import sys
import unicodedata
from dataclasses import dataclass
from typing import Any, NamedTuple

from kbert.data.entities.tag_schemes import tags_of
from kbert.data.entities.tagged_sentences import TaggedSentences
from kbert.data.tables.columns import Columns, check_different, shortened, without_surrogates
from kbert.data.tables.table import read_table
from kbert.text.wordpiece.normalization import IDEOGRAPHS


class Entity(NamedTuple):
    """An entity in a text: offsets of its first code point and behind its last, and its type."""

    start: int
    end: int
    label: str


@dataclass(frozen=True)
class EntityExamples(Columns):
    """Texts with their entities."""

    texts: list[str]
    # from left to right, without overlap; None for texts without annotation
    entities: list[list[Entity]] | None
    ids: list[str] | None
    source: str
    lines: list[int]

    columns = ("texts", "entities", "ids", "lines")

    @property
    def labels(self) -> list[str]:
        """The types of the entities, sorted; none for texts without annotation."""
        return sorted({entity.label for each in self.entities or () for entity in each})


def read_entity_rows(path: str | os.PathLike[str], *, labeled: bool = True) -> EntityExamples:
    """Reads texts with annotated entities, in the order of the file.

    It is JSON Lines (or a JSON list), plain or gzipped, of {"text": string, "entities": [{"start":
    integer, "end": integer, "label": string}]} and optionally "id"; the offsets count code points,
    and `end` is exclusive. A text may have no entity: `[]`; `labeled=False` does not read them. A
    ValueError, with file and line, also says that an entity is empty, white space, outside of its
    text or overlaps another, or that an id occurs twice.
    """
    table = read_table(path)
    if not isinstance(table.rows[0], dict):
        raise ValueError(
            f"{table.source}: annotated texts must be JSON Lines or JSON. Received: a table with "
            f"{table.header}"
        )
    texts = table.texts("text", strict=True)
    entities = None
    if labeled:
        entities = [
            _entities(value, text, f"{table.source}, line {line}")
            for value, text, line in zip(table.values("entities"), texts, table.lines)
        ]
    ids = table.ids("id") if table.find("id") else None
    check_different(table.source, ids or (), (f"line {line}" for line in table.lines))
    return EntityExamples(texts, entities, ids, table.source, table.lines)


def tagged_words(
    examples: EntityExamples, scheme: str = "bio", cut: bool = True
) -> TaggedSentences:
    """Cuts texts into words; `scheme` is "bio", "iob1" or "iobes".

    With `cut`, which is for training, at every border of an entity too, so that each entity is
    whole words; a ValueError, with the line, says that one holds no word. Without, words are what
    they are without annotation, and an entity is the words that it has a part of and that the one
    before it has not.
    """
    words: list[list[str]] = []
    tags: list[list[str]] = []
    for i, text in enumerate(examples.texts):
        entities = [] if examples.entities is None else examples.entities[i]
        borders = [border for e in entities for border in (e.start, e.end)] if cut else []
        places = _words(text, borders)
        spans: list[tuple[str, int, int]] = []
        for entity in entities:
            free = spans[-1][2] if spans else 0
            inside = (entity.start < end and start < entity.end for start, end in places)
            own = [number for number, is_own in enumerate(inside) if is_own and number >= free]
            if not own and not cut:
                continue
            if not own:
                raise ValueError(
                    f"{examples.source}, line {examples.lines[i]}: an entity must hold a word. "
                    f"Received: {text[entity.start : entity.end]!r} at {entity.start}"
                )
            spans.append((entity.label, own[0], own[-1] + 1))
        words.append([text[start:end] for start, end in places])
        tags.append(tags_of(spans, len(places), scheme))
    known = None if examples.entities is None else tags
    documents = list(range(len(words)))
    every = TaggedSentences(words, known, documents, examples.source, examples.lines, False)
    return every.select(i for i in documents if words[i])


def _entities(value: Any, text: str, where: str) -> list[Entity]:
    if not isinstance(value, list):
        raise ValueError(
            f"{where}: `entities` must be a list of objects with `start`, `end` and `label`. "
            f"Received: {shortened(value)}"
        )
    entities = sorted(
        _entity(item, text, f"{where}, entities[{i}]") for i, item in enumerate(value)
    )
    for before, after in zip(entities, entities[1:]):
        if after.start < before.end:
            raise ValueError(
                f"{where}: `entities` must not overlap. Received: {tuple(before)} and "
                f"{tuple(after)}"
            )
    return entities


def _entity(item: Any, text: str, where: str) -> Entity:
    if not isinstance(item, dict):
        raise ValueError(
            f"{where}: the entity must be an object with `start`, `end` and `label`. Received: "
            f"{shortened(item)}"
        )
    for name in ("start", "end"):
        offset = item.get(name)
        if isinstance(offset, bool) or not isinstance(offset, int):
            raise ValueError(
                f"{where}: `{name}` must be an integer, counted in code points. Received: "
                f"{shortened(offset)}"
            )
    label = item.get("label")
    if not isinstance(label, str) or not label.strip():
        raise ValueError(
            f"{where}: `label` must be a string that is not empty. Received: {shortened(label)}"
        )
    start, end = item["start"], item["end"]
    if not 0 <= start < end <= len(text):
        raise ValueError(
            f"{where}: `start` and `end` must enclose at least one of the text's {len(text)} code "
            f"points. Received: start={start}, end={end}"
        )
    if not text[start:end].strip():
        raise ValueError(
            f"{where}: the entity must be more than white space. Received: {text[start:end]!r}"
        )
    return Entity(start, end, without_surrogates(label, f"{where}, `label`"))


@functools.cache
def _word() -> re.Pattern[str]:
    """Returns the pattern of a word: a run of letters, digits and inner punctuation, an ideograph,
    or one sign.

    Combining marks are not letters to `re`, yet they belong to the word. Format characters, such as
    the soft hyphen, may stand within a word; alone neither is one, as tokenizers drop them.
    """
    kinds: dict[str, str] = {"M": "", "Cf": ""}
    for character in map(chr, range(sys.maxunicode + 1)):
        category = unicodedata.category(character)
        kind = "M" if category.startswith("M") else category
        if kind in kinds:
            kinds[kind] += character
    bounds = (part.split("-") for part in IDEOGRAPHS.split())
    ideographs = "".join(f"{chr(int(low, 16))}-{chr(int(high, 16))}" for low, high in bounds)
    word = rf"[^\W{ideographs}]"
    letter = rf"(?:{word}|[{kinds['M']}])"
    inside = rf"(?:{letter}|[{kinds['Cf']}.'’&/-])"
    sign = rf"[^\s\w{kinds['M']}{kinds['Cf']}]"
    return re.compile(
        rf"[{ideographs}][{kinds['M']}]*|[@#]?{word}(?:{inside}*{letter})?|{sign}|[@#](?={word})"
    )


def _words(text: str, borders: list[int]) -> list[tuple[int, int]]:
    """Returns the offsets (start, end) of the words of a text."""
    edges = sorted({0, *borders, len(text)})
    return [
        match.span()
        for begin, end in zip(edges, edges[1:])
        for match in _word().finditer(text, begin, end)
    ]

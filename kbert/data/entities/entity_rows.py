"""Texts with entities marked by character offsets, one JSON object a line."""

import os
from dataclasses import dataclass
from typing import Any, NamedTuple

from kbert.data.tables.cells import shortened, without_surrogates
from kbert.data.tables.columns import Columns
from kbert.data.tables.table import Table, read_table


class Entity(NamedTuple):
    """An entity in a text.

    Attributes:
        start: offset of its first code point.
        end: offset behind its last code point.
        label: its type.
    """

    start: int
    end: int
    label: str


@dataclass(frozen=True)
class EntityExamples(Columns):
    """Texts with their entities.

    Attributes:
        texts: the texts.
        entities: the entities of each text from left to right, without overlap; None for texts
            without annotation.
        ids: the examples' own ids, as strings; None where the file has none.
        source: where the examples come from, for messages.
        lines: 1-based line of each example in its source.
    """

    texts: list[str]
    entities: list[list[Entity]] | None
    ids: list[str] | None
    source: str
    lines: list[int]

    columns = ("texts", "entities", "ids", "lines")

    @property
    def labels(self) -> list[str]:
        """Returns the types of the entities, sorted; none for texts without annotation."""
        return sorted({entity.label for each in self.entities or () for entity in each})


def read_entity_rows(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    labeled: bool = True,
    encoding_errors: str = "strict",
) -> EntityExamples:
    """Reads texts with annotated entities.

    Args:
        path: JSON Lines (or a JSON list) of {"text": string, "entities": [{"start": integer,
            "end": integer, "label": string}]} and optionally "id"; the offsets count code points,
            and `end` is exclusive. UTF-8, plain or gzipped.
        format: "jsonl" or "json"; None takes it from the name.
        labeled: whether `entities` is required (a text may have none: `[]`); False does not read
            it.
        encoding_errors: "strict", or "replace" to read U+FFFD for bytes that are not UTF-8 and for
            escapes that are half of a surrogate pair.

    Returns:
        `EntityExamples` in the order of the file.

    Raises:
        ValueError: the file or a row is wrong, an entity is empty, white space, outside of its text
            or overlaps another, or an id occurs twice. The message names file and line.
        FileNotFoundError: there is no such file.
    """
    table = read_table(path, format=format, encoding_errors=encoding_errors)
    if not isinstance(table.rows[0], dict):
        raise ValueError(
            f"{table.source}: annotated texts must be JSON Lines or JSON. Received: a table with "
            f"columns {', '.join(f'`{name}`' for name in table.columns or ())}"
        )
    texts = [
        without_surrogates(text, f"{table.source}, line {line}, column `text`", encoding_errors)
        for text, line in zip(table.texts("text"), table.lines)
    ]
    entities = None
    if labeled:
        entities = [
            _entities(value, text, f"{table.source}, line {line}", encoding_errors)
            for value, text, line in zip(table.values("entities"), texts, table.lines)
        ]
    return EntityExamples(texts, entities, _ids(table), table.source, table.lines)


def _ids(table: Table) -> list[str] | None:
    if "id" not in (table.columns or ()):
        return None
    ids = table.ids("id")
    seen: dict[str, int] = {}
    for id, line in zip(ids, table.lines):
        if id in seen:
            raise ValueError(
                f"{table.source}, line {line}: each id must occur once. Received: {id!r}, which "
                f"line {seen[id]} has too"
            )
        seen[id] = line
    return ids


def _entities(value: Any, text: str, where: str, encoding_errors: str) -> list[Entity]:
    if not isinstance(value, list):
        raise ValueError(
            f"{where}: `entities` must be a list of objects with `start`, `end` and `label`. "
            f"Received: {shortened(value)}"
        )
    entities = sorted(
        _entity(item, text, f"{where}, entities[{i}]", encoding_errors)
        for i, item in enumerate(value)
    )
    for before, after in zip(entities, entities[1:]):
        if after.start < before.end:
            raise ValueError(
                f"{where}: `entities` must not overlap. Received: {tuple(before)} and "
                f"{tuple(after)}"
            )
    return entities


def _entity(item: Any, text: str, where: str, encoding_errors: str) -> Entity:
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
    return Entity(start, end, without_surrogates(label, f"{where}, `label`", encoding_errors))

"""Texts with marked entities as sentences of tagged words."""

import functools
import re
import sys
import unicodedata

from kbert.data.entities.entity_rows import EntityExamples
from kbert.data.entities.tag_schemes import tags_of
from kbert.data.entities.tagged_sentences import TaggedSentences

_NOT_JOINED = "\u200c\u200d"  # occur within words of Persian and of Indian languages


@functools.cache
def _word() -> re.Pattern[str]:
    """Returns the pattern of a word: a run of letters, digits and inner punctuation, or one sign.

    Combining marks are not letters to `re`, yet they belong to the word.
    """
    marks = "".join(
        character
        for character in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(character).startswith("M")
    )
    letter = rf"\w{marks}"
    inside = rf"{letter}{_NOT_JOINED}.'’&/-"
    return re.compile(rf"[@#]?\w(?:[{inside}]*[{letter}])?|[^\w\s]|[@#](?=\w)")


def tagged_words(examples: EntityExamples, scheme: str = "bio") -> TaggedSentences:
    """Cuts texts into words, at every border of an entity too, so that each entity is whole words.

    Args:
        examples: texts with their entities.
        scheme: scheme of the tags: "bio", "iob1" or "iobes".

    Raises:
        ValueError: an entity holds no word; the message names the line.
    """
    words: list[list[str]] = []
    tags: list[list[str]] = []
    for i, text in enumerate(examples.texts):
        entities = [] if examples.entities is None else examples.entities[i]
        places = _words(text, [border for e in entities for border in (e.start, e.end)])
        spans = []
        for entity in entities:
            own = [
                number
                for number, (start, end) in enumerate(places)
                if start >= entity.start and end <= entity.end
            ]
            if not own:
                raise ValueError(
                    f"{examples.source}, line {examples.lines[i]}: an entity must hold a word. "
                    f"Received: {text[entity.start : entity.end]!r} at {entity.start}"
                )
            spans.append((entity.label, own[0], own[-1] + 1))
        words.append([text[start:end] for start, end in places])
        tags.append(tags_of(spans, len(places), scheme))
    known = None if examples.entities is None else tags
    kept = [i for i, sentence in enumerate(words) if sentence]
    return TaggedSentences(
        [words[i] for i in kept],
        None if known is None else [known[i] for i in kept],
        kept,
        examples.source,
        [examples.lines[i] for i in kept],
        is_line_a_word=False,
    )


def _words(text: str, borders: list[int]) -> list[tuple[int, int]]:
    """Returns the offsets (start, end) of the words of a text."""
    edges = sorted({0, *borders, len(text)})
    return [
        match.span()
        for begin, end in zip(edges, edges[1:])
        for match in _word().finditer(text, begin, end)
    ]

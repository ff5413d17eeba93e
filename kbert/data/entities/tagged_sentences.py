"""Sentences of tagged words, the form of examples that training on tags takes."""

import warnings
from dataclasses import dataclass, replace

from kbert.data.entities.tag_schemes import (
    convert,
    detect_scheme,
    impossible_tag,
    parse_tag,
    scheme_name,
)
from kbert.data.tables.columns import Columns


@dataclass(frozen=True)
class TaggedSentences(Columns):
    """Sentences in words, with a tag for each word.

    Attributes:
        words: the words of each sentence, at least one.
        tags: the tag of each word; None for untagged sentences.
        documents: 0-based number of the document that each sentence belongs to.
        source: where the sentences come from, for messages.
        lines: 1-based line of each sentence's first word, or number of its row.
        is_line_a_word: whether each word has a line of its own; otherwise all share the row's.
    """

    words: list[list[str]]
    tags: list[list[str]] | None
    documents: list[int]
    source: str
    lines: list[int]
    is_line_a_word: bool = True

    columns = ("words", "tags", "documents", "lines")

    def __post_init__(self) -> None:
        """Checks that all columns have one length, and that each word has a tag."""
        super().__post_init__()
        for words, tags, line in zip(self.words, self.tags or (), self.lines):
            if len(words) != len(tags):
                raise ValueError(
                    f"{self.source}, line {line}: each of the sentence's {len(words)} words must "
                    f"have a tag. Received: {len(tags)} tags"
                )

    @property
    def texts(self) -> list[str]:
        """Returns the sentences as texts: their words joined by spaces."""
        return [" ".join(words) for words in self.words]

    def line_of(self, sentence: int, word: int) -> int:
        """Returns the 1-based line of a word, by 0-based indices of its sentence and in it."""
        return self.lines[sentence] + (word if self.is_line_a_word else 0)

    @property
    def labels(self) -> list[str]:
        """Returns the entity types of the tags, sorted; none for untagged sentences."""
        tags = {tag for sentence in self.tags or () for tag in sentence}
        return sorted({parse_tag(tag).type for tag in tags if tag != "O"})


def in_scheme(
    sentences: TaggedSentences,
    target: str = "bio",
    source: str | None = None,
    repair: str | None = None,
) -> TaggedSentences:
    """Converts the tags of sentences to one scheme, after a check of every sentence.

    Warns (`UserWarning`) about sentences that had to be repaired.

    Args:
        sentences: tagged sentences.
        target: the scheme of the result: "bio", "iob1" or "iobes".
        source: the scheme of the tags; None finds it with `detect_scheme`.
        repair: None: tags that the scheme does not allow at their position are an error.
            "conlleval": they are read as conlleval does.

    Raises:
        ValueError: the sentences have no tags, or a tag is invalid or not allowed at its
            position; the message names file, sentence and line.
    """
    if sentences.tags is None:
        raise ValueError(f"{sentences.source}: the sentences must have tags. Received: none")
    _check_tags(sentences, sentences.tags)
    scheme = detect_scheme(sentences.tags) if source is None else scheme_name(source)
    tags, repaired = [], []
    for i, sentence in enumerate(sentences.tags):
        wrong = impossible_tag(sentence, scheme)
        if wrong is not None:
            line = sentences.line_of(i, wrong[0])
            repaired.append(line)
            if repair is None:
                raise ValueError(
                    f"{sentences.source}, line {line} (sentence {i + 1}, word {wrong[0] + 1}): "
                    f"{wrong[1]}. Received: {sentence[wrong[0]]!r} in the scheme {scheme}. "
                    "repair='conlleval' reads such tags as conlleval does."
                )
        tags.append(convert(sentence, scheme, target, repair))
    if repaired:
        warnings.warn(
            f"{sentences.source}: {len(repaired)} of {len(tags)} sentences hold tags that "
            f"{scheme} does not allow; they were read as conlleval does (lines "
            f"{', '.join(map(str, repaired[:10]))}{', ...' if len(repaired) > 10 else ''}).",
            stacklevel=2,
        )
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

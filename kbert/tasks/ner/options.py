"""Options of `kbert train ner` alone."""

from dataclasses import dataclass

from kbert.options.configuration import Configuration
from kbert.options.kinds import choice, option


@dataclass(frozen=True)
class EntityOptions(Configuration):
    """Options of a model that finds named entities."""

    tag_scheme: str = option(
        "bio", choice("bio", "iobes"), "Data", "Of ner: the tags that are learned, bio or iobes."
    )

"""Options of named-entity recognition."""

from dataclasses import dataclass

from kbert.options.kinds import choice, option
from kbert.tasks.base.options import HeadOptions, LabelColumnOptions, WindowOptions


@dataclass(frozen=True)
class EntityOptions(WindowOptions, HeadOptions, LabelColumnOptions):
    """Options of named entities."""

    tag_scheme: str = option(
        "bio", choice("bio", "iobes"), "Data", "Of ner: the tags that are learned, bio or iobes."
    )

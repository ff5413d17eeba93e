"""Options of `kbert train span-tagging` alone."""

from dataclasses import dataclass

from kbert.options.configuration import Configuration
from kbert.options.kinds import flag, option


@dataclass(frozen=True)
class SpanOptions(Configuration):
    """Options of a model that marks several answers."""

    soft: bool = option(
        True, flag(), "Model", "Of span-tagging: several answers are opinions to be averaged."
    )

"""Options of span tagging."""

from dataclasses import dataclass

from kbert.options.kinds import flag, option
from kbert.tasks.base.options import HeadOptions
from kbert.tasks.question_answering.options import QuestionOptions


@dataclass(frozen=True)
class SpanTaggingOptions(QuestionOptions, HeadOptions):
    """Options of any number of spans."""

    soft: bool = option(
        True, flag(), "Model", "Of span-tagging: several answers are opinions to be averaged."
    )

"""Options of classification."""

from dataclasses import dataclass

from kbert.options.kinds import column, names, option, weights
from kbert.tasks.base.options import LabelColumnOptions, SequenceHeadOptions


@dataclass(frozen=True)
class TextOptions(SequenceHeadOptions, LabelColumnOptions):
    """Options of classes and scores of texts."""

    text_a: str | int | None = option(
        None, column(), "Data", "Column of the text, by name or index; by default it is looked for."
    )
    text_b: str | int | None = option(None, column(), "Data", "Column of the second text.")


@dataclass(frozen=True)
class ClassificationOptions(TextOptions):
    """Options of classes."""

    labels: list[str] | None = option(
        None, names(), "Data", "Labels in their order, a,b,c; by default the training's, sorted."
    )
    class_weights: str | dict[str, float] = option(
        "none", weights(), "Training", "none, balanced, or a weight for each label: {a: 1, b: 2}."
    )

"""Options of `kbert train multi-label` alone."""

from dataclasses import dataclass

from kbert.options.configuration import Configuration
from kbert.options.kinds import flag, option, separator, thresholds


@dataclass(frozen=True)
class MultiLabelOptions(Configuration):
    """Options of a classifier that gives a text any number of labels."""

    label_separator: str = option(
        "|", separator(), "Data", "Of multi-label: what stands between the labels of a text."
    )
    threshold: float | dict[str, float] = option(
        0.5,
        thresholds(),
        "Model",
        "Of multi-label: the probability from which on a label counts, or {label: number}.",
    )
    tune_thresholds: bool = option(
        False,
        flag(),
        "Training",
        "Of multi-label: give each label the threshold with the largest F1 on the validation data.",
    )

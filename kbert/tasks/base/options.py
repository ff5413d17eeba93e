"""Options that several tasks share."""

from dataclasses import dataclass

from kbert.options.configuration import Configuration
from kbert.options.kinds import choice, column, number, option, whole

RATE = number("a number in [0, 1)", lambda v: 0 <= v < 1)


@dataclass(frozen=True)
class HeadOptions(Configuration):
    """Options of a head with dropout."""

    dropout: float = option(0.1, RATE, "Model", "Dropout rate before the head.")


@dataclass(frozen=True)
class SequenceHeadOptions(HeadOptions):
    """Options of a head on the first position of a sequence."""

    head: str = option("pooler", choice("pooler", "two_layer"), "Model", "pooler or two_layer.")


@dataclass(frozen=True)
class LabelColumnOptions(Configuration):
    """The option of the column that has the labels."""

    label: str | int | None = option(
        None, column(), "Data", "Column of the label or score; of ner by default the last."
    )


@dataclass(frozen=True)
class WindowOptions(Configuration):
    """Options of tasks that read long texts in windows."""

    stride: int | None = option(
        None,
        whole(0, optional=True),
        "Model",
        "Tokens that windows share, by default 128 with questions, 32 without.",
    )
    adapter_dim: int | None = option(
        None,
        whole(1, optional=True),
        "Model",
        "Of tasks that read: train bottleneck adapters of this width and leave the encoder as it "
        "is.",
    )

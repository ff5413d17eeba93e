"""Options that several tasks on an encoder have; those of one alone are in its folder."""

from dataclasses import dataclass

from kbert.options.configuration import Configuration
from kbert.options.kinds import choice, column, names, option, rate, weights, whole


@dataclass(frozen=True)
class TaskOptions(Configuration):
    """Options of heads, of the texts that they read, and of the columns of their examples."""

    label: str | int | None = option(
        None, column(), "Data",
        "Column of the label or score; of ner by default the last; of "
        "multi-label also columns of 0 and 1, a,b,c.",
    )
    dropout: float = option(0.1, rate(), "Model", "Dropout rate before the head.")
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
    max_question_length: int | None = option(
        None, whole(1, optional=True), "Model", "Longest question in tokens, by default 64."
    )
    other_windows: int | None = option(
        None,
        whole(0, optional=True),
        "Data",
        "Of questions: how many windows without the answer each question trains on, drawn by the "
        "seed; by default all.",
    )
    head: str = option(
        "pooler",
        choice("pooler", "two_layer"),
        "Model",
        "pooler, or the one of the encoder where it was published with another; or two_layer.",
    )
    text_a: str | int | None = option(
        None, column(), "Data", "Column of the text, by name or index; by default it is looked for."
    )
    text_b: str | int | None = option(None, column(), "Data", "Column of the second text.")
    labels: list[str] | None = option(
        None, names(), "Data", "Labels in their order, a,b,c; by default the training's, sorted."
    )
    class_weights: str | dict[str, float] = option(
        "none", weights(), "Training", "none, balanced, or a weight for each label: {a: 1, b: 2}; "
        "of multi-label it is that of its positive targets.",
    )

"""Options of the tasks on an encoder: most serve several of them."""

from dataclasses import dataclass

from kbert.options.configuration import Configuration
from kbert.options.kinds import (
    choice,
    column,
    flag,
    names,
    option,
    rate,
    separator,
    thresholds,
    weights,
    whole,
)


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
    tag_scheme: str = option(
        "bio", choice("bio", "iobes"), "Data", "Of ner: the tags that are learned, bio or iobes."
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
    soft: bool = option(
        True, flag(), "Model", "Of span-tagging: several answers are opinions to be averaged."
    )
    max_answer_length: int | None = option(
        None, whole(1, optional=True), "Model", "Longest answer in tokens, by default 30."
    )
    all_occurrences: bool = option(
        False,
        flag(),
        "Data",
        "Of questions: an answer counts wherever its text stands, where its place was guessed.",
    )
    head: str = option(
        "pooler",
        choice("pooler", "two_layer"),
        "Model",
        "pooler, or the one of the encoder where it was published with another; or two_layer.",
    )
    pooling: str | None = option(
        None,
        choice("mean", "cls", "max", optional=True),
        "Model",
        "Of embedding: mean, cls or max of the states; by default the encoder's own, or mean.",
    )
    dense: int | None = option(
        None,
        whole(1, optional=True),
        "Model",
        "Of embedding: width of a dense layer behind the pooling; by default there is none.",
    )
    loss: str | None = option(
        None,
        choice("multiple-negatives", "cosine", "triplet", optional=True),
        "Training",
        "Of embedding: multiple-negatives, cosine or triplet; by default cosine where there are "
        "scores, else multiple-negatives.",
    )
    chunk_rows: int | None = option(
        None,
        whole(1, optional=True),
        "Training",
        "Of embedding with multiple-negatives: examples in memory at a time, for larger batches.",
    )
    text_a: str | int | None = option(
        None, column(), "Data", "Column of the text, by name or index; by default it is looked for."
    )
    text_b: str | int | None = option(None, column(), "Data", "Column of the second text.")
    labels: list[str] | None = option(
        None, names(), "Data", "Labels in their order, a,b,c; by default the training's, sorted."
    )
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
    class_weights: str | dict[str, float] = option(
        "none", weights(), "Training", "none, balanced, or a weight for each label: {a: 1, b: 2}; "
        "of multi-label it is that of its positive targets.",
    )

"""Options that several tasks on an encoder have; those of one alone are in its folder."""

from dataclasses import dataclass

from kbert.layers.adapters.configs import KINDS as ADAPTERS
from kbert.models.feature_names import FEATURES, READERS
from kbert.options.configuration import Configuration
from kbert.options.kinds import (
    choice,
    column,
    names,
    number,
    option,
    rate,
    text,
    weights,
    whole,
)

# Of feature-based runs; tasks that take part in it have all of these.
FEATURE_OPTIONS = ("head", "features", "lstm_dim", "feature_cache")


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
    adapter: str | None = option(
        None,
        choice(*ADAPTERS, optional=True),
        "Model",
        "Leave the encoder as it is, and train an adapter in each block beside the head: houlsby, "
        "pfeiffer or lora.",
    )
    fuse: list[str] | None = option(
        None,
        names(),
        "Model",
        "Leave the encoder as it is, and train a fusion of the Pfeiffer adapters of these runs or "
        "folders, a,b,c, which were trained in the same encoder.",
    )
    adapter_dim: int | None = option(
        None,
        whole(1, optional=True),
        "Model",
        "Width of the bottleneck, by default 64 with houlsby, and a 16th of the encoder's width "
        "with pfeiffer.",
    )
    lora_rank: int | None = option(
        None, whole(1, optional=True), "Model", "Of lora: rank of the additions, by default 8."
    )
    lora_alpha: float | None = option(
        None,
        number("a number above 0", lambda v: v > 0, optional=True),
        "Model",
        "Of lora: alpha; additions are scaled by alpha / rank. By default the rank, a factor of 1.",
    )
    lora_targets: list[str] | None = option(
        None,
        names(),
        "Model",
        "Of lora: the dense layers, two or more of query, key, value, attention_output, "
        "intermediate and output; by default query and value.",
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
        choice("pooler", "two_layer", *READERS),
        "Model",
        "pooler, or the one of the encoder where it was published with another; or two_layer. With "
        "features linear, the default, or bilstm.",
    )
    features: str | None = option(
        None,
        choice(*FEATURES, optional=True),
        "Model",
        "Leave the encoder as it is, and train a head on its states alone: those of the last or "
        "the second-to-last block, the last four added up or side by side, or a learned mix of "
        "all.",
    )
    lstm_dim: int | None = option(
        None,
        whole(1, optional=True),
        "Model",
        "With head bilstm: its width in each direction, by default that of the encoder.",
    )
    feature_cache: str | None = option(
        None,
        text("a folder"),
        "Model",
        "With features: keep the states in this folder for the next run; by default they are in "
        "that of the run, and removed at its end.",
    )
    text_a: str | int | None = option(
        None,
        column(),
        "Data",
        "Column of the text, by name, or by index in a file without a header; by default it is "
        "looked for.",
    )
    text_b: str | int | None = option(None, column(), "Data", "Column of the second text.")
    labels: list[str] | None = option(
        None, names(), "Data", "Labels in their order, a,b,c; by default the training's, sorted."
    )
    class_weights: str | dict[str, float] = option(
        "none", weights(), "Training", "none, balanced, or a weight for each label: {a: 1, b: 2}; "
        "of multi-label it is that of its positive targets.",
    )

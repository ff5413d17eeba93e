"""Options of `kbert train embedding` alone."""

from dataclasses import dataclass

from kbert.options.configuration import Configuration
from kbert.options.kinds import choice, option, whole


@dataclass(frozen=True)
class EmbeddingOptions(Configuration):
    """Options of a model that maps texts to vectors."""

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

"""The task embedding: vectors of texts, such that texts of like meaning have like vectors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kbert.data.classification.text_tuples import (
    TupleExamples,
    check_tuple_columns,
    read_tuple_examples,
    tuple_columns,
)
from kbert.options.configuration import ONE, wrong
from kbert.tasks.finetuned_task import TFDS, FinetunedTask

CONTRASTIVE, COSINE, TRIPLET = "multiple-negatives", "cosine", "triplet"
_OF_SCORES = ("spearman", "pearson")
_OF_PAIRS = ("accuracy", "mrr")


@dataclass(frozen=True)
class Embedding:
    """The vector of a text, and whether the text was cut."""

    embedding: list[float]
    truncated: bool | None = None


class EmbeddingTask(FinetunedTask):
    """The task of mapping texts to vectors."""

    name = "embedding"
    model_name = "TextEmbedder"
    module = "kbert.tasks.embedding.model"
    does = "maps a text to a vector, near to those of texts of like meaning"
    page = "embedding"
    outputs = ("embedding",)
    answer_keys = ("embedding",)
    settings = ("pooling", "dense")
    options = ("pooling", "dense", "loss", "chunk_rows")
    falling = ()
    compared = (*_OF_SCORES, *_OF_PAIRS)
    has_one_sequence = False

    def typed_answer(self, answer: Mapping[str, Any]) -> Embedding:
        return Embedding(answer["embedding"], answer.get("truncated"))

    def is_huggingface(self, architecture: str | None, checkpoint: Any) -> bool:
        return checkpoint.modules_path is not None and not checkpoint.heads

    def check(self, config: Any) -> None:
        what = f"with task={self.name!r}"
        for key in ("train", "validation", "test"):
            if str(getattr(config, key)).startswith(TFDS):
                raise wrong(key, f"a file {what}", getattr(config, key))
        if config.strategy == "tpu":
            expected = f"another one {what}: its batches have no fixed shapes"
            raise wrong("strategy", expected, config.strategy)
        if config.chunk_rows is None:
            return
        if config.loss not in (None, CONTRASTIVE):
            raise wrong("chunk_rows", f"left out with loss={config.loss!r}", config.chunk_rows)
        if config.strategy != ONE:
            expected = f"left out with strategy={config.strategy!r}"
            raise wrong("chunk_rows", expected, config.chunk_rows)

    def check_columns(self, path: str, columns: Mapping[str, str | int | None]) -> None:
        check_tuple_columns(path, **columns)

    def read_file(self, path: str, config: Any, part: str) -> TupleExamples:
        columns = {key: getattr(config, key) for key in ("text_a", "text_b", "label")}
        return read_tuple_examples(path, **columns)

    def check_part(self, part: str, examples: Any, train: Any, labels: list[str] | None) -> None:
        pass  # pairs with scores may be validated on after pairs without were learned from

    def loss(self, config: Any, train: Any) -> Any:
        from kbert.optimization import embedding_losses as losses

        scores, source = train.labels, train.source
        chosen = config.loss or (CONTRASTIVE if scores is None else COSINE)
        if config.chunk_rows is not None and chosen != CONTRASTIVE:
            expected = f"left out for {source}, which has scores, or given with loss={CONTRASTIVE}"
            raise wrong("chunk_rows", expected, config.chunk_rows)
        if chosen == COSINE:
            if scores is None:
                raise wrong("loss", f"another one for {source}, which has no scores", chosen)
            return losses.CosineRegression(min(0.0, *scores), max(1.0, *scores))
        if chosen == TRIPLET:
            if train.negatives is None:
                raise wrong("loss", f"another one for {source}, without a column negative", chosen)
            return losses.TripletMargin()
        return losses.MultipleNegatives(chunk_rows=config.chunk_rows)

    def monitors(self, labels: Sequence[str] | None, validation: Any = None) -> list[str]:
        if validation is None or validation.labels is not None:
            return list(_OF_SCORES if validation is not None else self.compared)
        return [*_OF_PAIRS, *(() if validation.negatives is None else ("triplet_accuracy",))]

    def inputs(self, model: Any, examples: Any) -> Any:
        from kbert.tasks.embedding.run_inputs import TupleInput

        if not isinstance(examples, TupleExamples):
            raise ValueError(
                f"{examples.source}: the examples must be pairs of texts for a "
                f"{type(model).__name__}. Received: {type(examples).__name__}"
            )
        return TupleInput(model.pack(*examples.texts))

    def prepare(self, model: Any, examples: Any, glue: str | None = None) -> Any:
        from kbert.tasks.embedding.run_inputs import prepared

        return prepared(self.inputs(model, examples), examples)

    def measured_examples(self, path: Any, columns: Mapping[str, Any], model: Any = None) -> Any:
        return read_tuple_examples(path, **columns)

    def text_columns(self, config: Any) -> tuple[str | int | None, ...]:
        # The second texts are of training alone.
        return (config.text_a,)

    def usual_columns(self, count: int) -> list[list[str]]:
        return tuple_columns(count) or [["text"], ["sentence"], ["text_a"], ["sentence1"]]

    def rows(self, examples: Any) -> list[tuple[Any, ...]]:
        return [(text,) for text in examples.text_a]


TASK = EmbeddingTask()

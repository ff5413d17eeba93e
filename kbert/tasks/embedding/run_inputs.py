"""Examples of several texts in a run, tokenized once: their batches, and metrics of a model."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kbert.data.batches.packed_examples import PackedExamples
from kbert.data.batches.plans import padding_share
from kbert.metrics.embeddings import embedding_metrics
from kbert.tasks.embedding.inputs import PackedTuples, TextColumns, tuple_plan
from kbert.tasks.inputs import PackedInput, Prepared, batch_sizes


@dataclass(frozen=True)
class TupleInput(PackedInput):
    """Pairs or triplets of texts in batches of random composition."""

    examples: PackedTuples

    @property
    def packed(self) -> PackedExamples:
        """The token ids of all texts."""
        return self.examples.packed

    @property
    def lengths(self) -> np.ndarray:
        """Number of real tokens of each example, over all its texts, int (n,)."""
        return self.examples.lengths

    @property
    def truncated(self) -> np.ndarray:
        """Mask of the examples with a text that was cut, bool (n,)."""
        return self.examples.truncated

    def _plan(self, config: Any, epoch: int) -> list[np.ndarray]:
        sizes, seed = batch_sizes(config), config.seed
        rows, tokens = sizes["batch_size"], sizes["batch_tokens"]
        return tuple_plan(self.examples.positions, rows, tokens, True, seed, epoch)

    def padding_share(self, config: Any) -> float:
        """Returns the share of padding in the batches of the first epoch, 0 to 1."""
        count = self.examples.count
        texts = [
            (batch[:, None] * count + np.arange(count)).reshape(-1)
            for batch in self._plan(config, 0)
        ]
        return padding_share(self.packed.lengths, texts)

    def predict(self, model: Any) -> np.ndarray:
        """Returns the vectors (n, K, D) of all texts by a model with the same tokenizer."""
        found: np.ndarray = model.batching.predict_packed(self.packed)
        return found.reshape(len(self.examples), self.examples.count, -1)


def prepared(tokenized: TupleInput, examples: Any) -> Prepared:
    """Returns `TupleExamples` to train and evaluate on: their targets and metrics."""
    scores = None if examples.labels is None else np.asarray(examples.labels, "float32")

    def measured(right: Any, vectors: Any) -> dict[str, Any]:
        return dict(embedding_metrics(vectors, scores))

    right = TextColumns(examples.texts).numbers if scores is None else scores
    return Prepared(tokenized, right, measured)

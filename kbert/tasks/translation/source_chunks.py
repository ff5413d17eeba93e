"""Tokenized sources that are translated a bounded number at a time, as graph code.

Shapes: B rows, k rows of one chunk.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from kbert.pipelines.inference.captured_weights import captured_weights
from kbert.text.graph_functions import map_in_chunks, places_in_chunks

# Positions of the source, rows times longest row, of one chunk.
_CHUNK_CELLS = 2048
# Chunks that are translated in parallel.
_CHUNKS_AT_ONCE = 2


class SourceChunks:
    """Raw strings (B,) as inputs of a translator's encoder; texts of similar length are together.

    Args:
        translator: a `Translator`.
        text: string (B,).

    Attributes:
        inputs: the inputs of the transformer's `encode`.
        lengths: int32 (B,), pieces of each source, the end token included.
        truncated: bool (B,), whether a text was truncated.
        sizes: int32 (B,), the longer of both tokenizations where there is a BERT: a text of few
            pieces can have many tokens for it.
    """

    def __init__(self, translator: Any, text: Any) -> None:
        self.inputs, self.lengths, self.truncated = translator.source_inputs(text)
        self.sizes = self.lengths
        # The inputs of a fused model's BERT.
        self.beside: dict[str, Any] = {}
        if translator.bert_tokenizer is not None:
            self.beside = translator.bert_inputs(text)
            self.sizes = tf.maximum(self.lengths, _counts(self.beside["bert_padding_mask"]))

    def take(self, chosen: tf.Tensor) -> tuple[dict[str, Any], tf.Tensor]:
        """Returns some rows of the inputs, as wide as the longest, and their lengths int32 (k,).

        Args:
            chosen: int (k,), the rows.
        """
        counts = tf.gather(self.lengths, chosen)
        longest = tf.reduce_max(counts)
        some = {key: tf.gather(value[:, :longest], chosen) for key, value in self.inputs.items()}
        if self.beside:
            longest = tf.reduce_max(
                tf.gather(_counts(self.beside["bert_padding_mask"]), chosen)
            )
            some |= {k: tf.gather(value[:, :longest], chosen) for k, value in self.beside.items()}
        return some, counts

    def map(
        self, run: Callable[[Any], Sequence[tf.Tensor]], specs: list[tf.TensorSpec]
    ) -> list[tf.Tensor]:
        """Runs `map_in_chunks` for a search.

        Args:
            run: maps rows int (k,) to tensors.
            specs: specs of the tensors, which are concatenated in the order of the chunks.
        """
        with captured_weights():
            return map_in_chunks(run, self.sizes, _CHUNK_CELLS, specs, _CHUNKS_AT_ONCE)

    @property
    def places(self) -> tf.Tensor:
        """Int (B,), the place of each row in the outputs of `map`."""
        return places_in_chunks(self.sizes)


def _counts(mask: Any) -> tf.Tensor:
    """Returns the number of real tokens of each row, int32 (B,)."""
    return tf.reduce_sum(tf.cast(mask, tf.int32), axis=1)

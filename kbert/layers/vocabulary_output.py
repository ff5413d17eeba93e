"""Logits over a vocabulary, by weights of their own or by those of the embeddings."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from kbert.layers.residual import ConfiguredLayer

TIED = ("all", "target", "none")


def check_tied(tied: str, vocabulary_size: int, source_vocabulary_size: int | None) -> None:
    """Raises a ValueError if a model cannot tie its embeddings so.

    `tied` is "all" (source, target and output), "target" (target and output) or "none";
    `source_vocabulary_size` is None where both sides share a vocabulary.
    """
    if tied not in TIED:
        raise ValueError(f"`tied` must be one of {list(TIED)}. Received: tied={tied!r}")
    if tied == "all" and source_vocabulary_size not in (None, vocabulary_size):
        raise ValueError(
            '`tied` must not be "all" for vocabularies of different sizes. Received: '
            f"vocabulary_size={vocabulary_size}, source_vocabulary_size={source_vocabulary_size}"
        )


def candidate_logits(token_ids: Any, output: Any, embedding: Any = None) -> Callable[[Any], Any]:
    """Returns a function from states (..., D) to float32 logits (..., C) of C tokens.

    What it needs of the weights is gathered here, once for all its calls.

    Args:
        token_ids: int (C,).
        output: the layer with the `bias` (V,) or None, and the `kernel` (D, V) if nothing is tied;
            None if there is neither.
        embedding: the `TokenEmbedding` (V, D) of a tied output.
    """
    if embedding is None:
        kernel = ops.take(output.kernel, token_ids, axis=1)
    else:
        kernel = ops.transpose(embedding.look_up(token_ids))
    bias = None if output is None or output.bias is None else ops.take(output.bias, token_ids)

    def logits(states: Any) -> Any:
        rows = ops.reshape(states, (-1, states.shape[-1]))
        found = ops.cast(ops.matmul(rows, ops.cast(kernel, states.dtype)), "float32")
        if bias is not None:
            found = found + ops.cast(bias, "float32")
        return ops.reshape(found, (*ops.shape(states)[:-1], ops.shape(found)[-1]))

    return logits


@keras.saving.register_keras_serializable("kbert")
class VocabularyOutput(ConfiguredLayer):
    """x W + b, in float32, where W may be the transposed table of the embeddings.

    Args:
        vocabulary_size: V.
        tied: whether `call` is given the embeddings.
    """

    def __init__(self, vocabulary_size: int, tied: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.vocabulary_size, self.tied = vocabulary_size, tied

    def build(self, input_shape: Any) -> None:
        """Creates W (D, V), unless tied, and b (V,), for an input (..., D)."""
        if not self.tied:
            self.kernel = self.add_weight(
                name="kernel",
                shape=(input_shape[-1], self.vocabulary_size),
                initializer="glorot_uniform",
            )
        self.bias = self.add_weight(name="bias", shape=(self.vocabulary_size,), initializer="zeros")
        self.built = True

    def call(self, inputs: Any, embedding: Any = None) -> Any:
        """Maps inputs (..., D) to logits (..., V), float32, or float64 for such weights.

        Args:
            inputs: (..., D).
            embedding: the `TokenEmbedding` of V and D if `tied`.
        """
        rows = ops.reshape(inputs, (-1, inputs.shape[-1]))
        found = embedding.logits(rows) if self.tied else ops.matmul(rows, self.kernel)
        found = found + self.bias
        wide = "float64" if self.compute_dtype == "float64" else "float32"
        return ops.reshape(ops.cast(found, wide), (*ops.shape(inputs)[:-1], self.vocabulary_size))

    def compute_output_shape(self, input_shape: Any, *args: Any, **kwargs: Any) -> Any:
        """(..., D) -> (..., V)."""
        return (*input_shape[:-1], self.vocabulary_size)

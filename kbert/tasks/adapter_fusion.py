"""Mean weights of the adapters of a fusion over all tokens of texts, for a picture of them.

Shapes: L layers, N adapters, B rows, T tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.data.batches.dataset import batched_dataset
from kbert.data.batches.packed_examples import PackedExamples, pack_examples
from kbert.pipelines.batching import EVALUATION_TOKENS
from kbert.tasks.registry import task_of


@dataclass(frozen=True)
class MeanWeights:
    """The mean weight of each adapter in each layer, over all real tokens of some examples.

    Attributes:
        adapters: Names of the N adapters.
        weights: Float64 (L, N); those of a layer add up to 1.
        examples: Number of examples, texts or pairs for instance.
        tokens: Number of their tokens, special ones too; one in several windows counts in each.
    """

    adapters: list[str]
    weights: np.ndarray
    examples: int
    tokens: int


def fused_encoder(model: Any) -> Any:
    """Returns the encoder of a model if it has an active fusion of adapters, else None."""
    encoder = getattr(model, "encoder", None)
    encoder = getattr(encoder, "encoder", encoder)  # the frozen one of a `FeatureBasedEncoder`
    return encoder if len(getattr(encoder, "active_adapters", ())) > 1 else None


def weights_of_texts(model: Any, texts: Sequence[str]) -> MeanWeights:
    """Returns the mean weights over the tokens of one text, or of a pair.

    `model` is a text model with a `fused_encoder`.
    """
    first, *second = ([text] for text in texts)
    longest = model.max_sequence_length
    packed = pack_examples(model.tokenizer, first, second[0] if second else None, longest)
    return _mean_weights(fused_encoder(model), packed, 1)


def weights_of_examples(model: Any, examples: Any) -> MeanWeights:
    """Returns the mean weights over the tokens of examples, in batches of similar length.

    `model` has a `fused_encoder`, and `examples` are what its `FinetunedTask` read.

    Raises:
        ValueError: There are none, or they are of another task.
    """
    task: Any = task_of(model)
    if not len(examples):
        raise ValueError(f"`examples` must be one or more. Received: none in {examples.source}")
    return _mean_weights(fused_encoder(model), task.inputs(model, examples).packed, len(examples))


def _mean_weights(encoder: Any, packed: PackedExamples, examples: int) -> MeanWeights:
    batches = batched_dataset(packed, batch_size=None, batch_tokens=EVALUATION_TOKENS)

    @tf.function(input_signature=[batches.element_spec])
    def total(inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns the sum over the real tokens of a batch, (L, N)."""
        weights = tf.cast(tf.stack(encoder.fusion_weights(inputs)), tf.float64)  # (L, B, T, N)
        real = inputs["padding_mask"][:, :, None]
        return tf.reduce_sum(tf.where(real, weights, 0.0), axis=(1, 2))

    totals = sum(total(inputs).numpy() for inputs in batches)
    tokens = packed.tokens
    return MeanWeights(encoder.active_adapters, totals / tokens, examples, tokens)

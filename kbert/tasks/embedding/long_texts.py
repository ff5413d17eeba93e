"""Vectors of texts that are longer than an encoder takes, by windows that do not overlap."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.data.batches.windowed_examples import window_examples
from kbert.pipelines.batching import EVALUATION_TOKENS
from kbert.text.graph_functions import cached_graph


def encode_windows(model: Any, texts: Sequence[Any], batch_size: int | None = None) -> np.ndarray:
    """Returns the vectors float32 (n, D) of texts of any length; see `TextEmbedder.encode`."""
    if not len(texts):
        found: np.ndarray = model.empty_prediction()
        return found
    windows = window_examples(model.tokenizer, texts, None, model.max_sequence_length, 0)
    lengths = windows.packed.lengths
    pooled = _pooled(model, windows.packed, batch_size)
    starts = np.flatnonzero(np.diff(windows.row, prepend=-1))  # windows are in the order of rows
    if model.pooling == "max":
        whole = np.maximum.reduceat(pooled, starts)
    else:
        # The mean of all tokens: each window's mean counts by its tokens.
        total = np.add.reduceat(pooled * lengths[:, None], starts)
        whole = total / np.add.reduceat(lengths, starts)[:, None]
    return np.asarray(model.finished(tf.constant(whole, tf.float32)))


def _pooled(model: Any, packed: Any, batch_size: int | None) -> np.ndarray:
    """Returns the pooled states float32 (W, hidden_dim) of windows, in their order."""

    def pooled(inputs: dict[str, Any]) -> Any:
        return model.pooled(inputs, training=False)

    graph = cached_graph(model, pooled)
    budget = None if batch_size else EVALUATION_TOKENS
    batches = model.dataset(packed, batch_size=batch_size, batch_tokens=budget)
    found = np.concatenate([graph(inputs).numpy() for inputs in batches])
    order = np.argsort(-packed.lengths, kind="stable")  # as unshuffled batches are ordered
    restored = np.empty_like(found)
    restored[order] = found
    return restored

"""Vectors of texts, cut or in windows, without Keras' `predict`.

To start `predict`, with a data set and callbacks, takes longer than to embed a query.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.data.batches.packed_examples import PackedExamples
from kbert.data.batches.plans import batch_plan
from kbert.data.batches.windowed_examples import window_examples
from kbert.optimization.steps import adapter_states
from kbert.pipelines.batching import EVALUATION_TOKENS
from kbert.text.graph_functions import cached_graph

_SPECS = {"token_ids": tf.int32, "segment_ids": tf.int32, "padding_mask": tf.bool}


def encode_cut(model: Any, packed: PackedExamples, batch_size: int | None = None) -> np.ndarray:
    """Returns the vectors float32 (n, D) of tokenized texts; see `TextEmbedder.encode`."""

    def vectors(inputs: dict[str, Any]) -> Any:
        return model(inputs, training=False)

    return _computed(model, vectors, packed, model.width, batch_size)


def encode_windows(model: Any, texts: Sequence[Any], batch_size: int | None = None) -> np.ndarray:
    """Returns the vectors float32 (n, D) of texts of any length; see `TextEmbedder.encode`."""
    if not len(texts):
        found: np.ndarray = model.empty_prediction()
        return found

    def pooled(inputs: dict[str, Any]) -> Any:
        return model.pooled(inputs, training=False)

    windows = window_examples(model.tokenizer, texts, None, model.max_sequence_length, 0)
    lengths, width = windows.packed.lengths, model.encoder.hidden_dim
    states = _computed(model, pooled, windows.packed, width, batch_size)
    starts = np.flatnonzero(np.diff(windows.row, prepend=-1))  # windows are in the order of rows
    if model.pooling == "max":
        whole = np.maximum.reduceat(states, starts)
    else:
        # The mean of all tokens: each window's mean counts by its tokens.
        total = np.add.reduceat(states * lengths[:, None], starts)
        whole = total / np.add.reduceat(lengths, starts)[:, None]
    return np.asarray(model.finished(tf.constant(whole, tf.float32)))


def _computed(
    model: Any,
    function: Callable[[dict[str, Any]], Any],
    packed: PackedExamples,
    width: int,
    batch_size: int | None,
) -> np.ndarray:
    """Returns what a function has for each sequence, float32 (n, width), in batches by length."""
    specs = {name: tf.TensorSpec((None, None), dtype) for name, dtype in _SPECS.items()}
    settings = [width, model.normalize, model.pooling, *adapter_states(model)]
    graph = cached_graph(model, function, settings, [specs])
    found = np.zeros((len(packed), width), "float32")
    budget = None if batch_size else EVALUATION_TOKENS
    for rows in batch_plan(packed.lengths, batch_size, budget) if len(packed) else ():
        found[rows] = graph(_padded(packed, rows)).numpy()
    return found


def _padded(packed: PackedExamples, rows: np.ndarray) -> dict[str, tf.Tensor]:
    """Returns some sequences as the inputs of an encoder, each (B, T)."""
    lengths = packed.lengths[rows]
    places = np.arange(lengths.max())
    real = places < lengths[:, None]
    cells = np.where(real, packed.starts[rows][:, None] + places, 0)
    columns = {
        "token_ids": np.where(real, packed.token_ids[cells], packed.padding_id),
        "segment_ids": np.where(real, packed.segment_ids[cells], 0),
        "padding_mask": real,
    }
    return {name: tf.constant(columns[name], dtype) for name, dtype in _SPECS.items()}

"""A BERT small enough to compute by the NumPy reference, and batches for it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kbert.models.bert import Bert
from kbert.models.weights import assign_arrays
from tests import numpy_reference as reference

CONFIG = {
    "vocabulary_size": 23,
    "hidden_dim": 12,
    "num_layers": 2,
    "num_heads": 3,
    "intermediate_dim": 20,
    "max_sequence_length": 9,
}
# What a model has that is told nothing else: the values of Devlin et al.
DEFAULTS = {
    "num_segments": 2,
    "dropout": 0.1,
    "attention_dropout": 0.1,
    "activation": "gelu",
    "layer_norm_epsilon": 1e-12,
    "initializer_range": 0.02,
}
SHAPES = reference.bert_array_shapes(23, 12, 20, 2, 9)
ARRAYS = reference.random_arrays(SHAPES, seed=5)
TOKENS = np.random.default_rng(6).integers(0, 23, (4, 6)).astype("int32")
SEGMENTS = np.array([[0, 0, 0, 1, 1, 1]] * 2 + [[0, 0, 0, 0, 0, 0], [0, 1, 0, 1, 1, 0]], "int32")
# Some padding, none, padding in the midst, and a row that is all padding.
MASK = np.array([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1], [1, 0, 1, 0, 0, 1], [0] * 6], bool)
INPUTS = {"token_ids": TOKENS, "segment_ids": SEGMENTS, "padding_mask": MASK}


def small_bert(**kwargs: Any) -> Bert:
    """The model with the weights of `ARRAYS`."""
    model = Bert(**{**CONFIG, **kwargs})
    assign_arrays(model, ARRAYS)
    return model


def expected_outputs(**kwargs: Any) -> reference.BertOutputs:
    """What the reference computes with `ARRAYS` on `TOKENS`."""
    return reference.bert(ARRAYS, TOKENS, 2, 3, **kwargs)


def assign_head(model: Any, arrays: Mapping[str, np.ndarray]) -> None:
    """Gives the head of a task its arrays, by path without model and head."""
    for variable in model.sequence_head.weights:
        variable.assign(arrays[variable.path.split("sequence_head/")[-1]])

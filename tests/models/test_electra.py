"""Electra against the NumPy reference of ALBERT, with a block for each layer and no pooler."""

from typing import Any

import numpy as np

from kbert.models.electra import Electra
from kbert.models.weights import assign_arrays, encoder_arrays
from tests import numpy_reference as reference
from tests.check_layer import check_layer
from tests.models.check_encoder import (
    check_adapters,
    check_cannot_be_causal,
    check_files,
    check_numbers,
    check_recomputed_blocks,
)
from tests.models.test_albert import PATHS as OF_ALBERT
from tests.small_bert import CONFIG as OF_BERT
from tests.small_bert import INPUTS, MASK, SEGMENTS, TOKENS

CONFIG = {**OF_BERT, "embedding_dim": 5}
PATHS = {path: shape for path, shape in OF_ALBERT.items() if not path.startswith("pooler/")}
ARRAYS = reference.random_arrays(PATHS, seed=7)
NO_POOLER = {"pooler/kernel": np.zeros((12, 12)), "pooler/bias": np.zeros(12)}


def small_electra(**kwargs: Any) -> Electra:
    model = Electra(**{**CONFIG, **kwargs})
    assign_arrays(model, ARRAYS)
    return model


def expected() -> reference.BertOutputs:
    arrays = {**ARRAYS, **NO_POOLER}
    return reference.albert(arrays, TOKENS, [0, 1], 3, SEGMENTS, MASK, activation="gelu")


def test_ritual():
    inputs = {**INPUTS, "padding_mask": np.ones((4, 6), bool)}
    check_layer(Electra, CONFIG, inputs, {"sequence_output": (4, 6, 12)}, PATHS)


def test_numbers():
    check_numbers(small_electra(), expected())


def test_there_is_no_projection_where_the_widths_are_equal():
    model = Electra(**OF_BERT)
    assert model.embedding_dim == 12 and model.embedding_projection is None
    arrays = reference.random_arrays({n: a.shape for n, a in encoder_arrays(model).items()}, 3)
    assign_arrays(model, arrays)
    wanted = reference.bert({**arrays, **NO_POOLER}, TOKENS, 2, 3, SEGMENTS, MASK)
    check_numbers(model, wanted)


def test_recomputed_blocks():
    check_recomputed_blocks(small_electra)


def test_files(tmp_path):
    check_files(small_electra, tmp_path)


def test_adapters(tmp_path):
    check_adapters(small_electra, "lora", tmp_path)


def test_it_cannot_be_causal():
    check_cannot_be_causal(small_electra)

"""Roberta against the NumPy reference of BERT, and what differs from it."""

from typing import Any

import numpy as np
import pytest

from kbert.models.roberta import Roberta
from kbert.models.weights import assign_arrays
from tests import numpy_reference as reference
from tests.check_layer import check_layer
from tests.models.check_encoder import (
    check_adapters,
    check_files,
    check_numbers,
    check_recomputed_blocks,
)
from tests.small_bert import CONFIG, INPUTS, MASK, SHAPES, TOKENS

# P is 9: two rows more, and one segment.
PATHS = {
    **SHAPES,
    "embeddings/position_embedding/embeddings": (11, 12),
    "embeddings/segment_embedding/embeddings": (1, 12),
}
ARRAYS = reference.random_arrays(PATHS, seed=5)


def small_roberta(**kwargs: Any) -> Roberta:
    model = Roberta(**{**CONFIG, **kwargs})
    assign_arrays(model, ARRAYS)
    return model


def expected(**kwargs: Any) -> reference.BertOutputs:
    name = "embeddings/position_embedding/embeddings"
    read = {**ARRAYS, name: ARRAYS[name][2:]}
    return reference.bert(read, TOKENS, 2, 3, None, MASK, epsilon=1e-5, **kwargs)


def test_ritual():
    outputs = {"sequence_output": (4, 6, 12), "pooled_output": (4, 12)}
    inputs = {**INPUTS, "padding_mask": np.ones((4, 6), bool)}
    check_layer(Roberta, CONFIG, inputs, outputs, PATHS)


def test_numbers_do_not_depend_on_the_segments():
    model = small_roberta()
    assert set(np.unique(INPUTS["segment_ids"])) == {0, 1}
    check_numbers(model, expected())


def test_numbers_of_a_causal_one():
    inputs = {**INPUTS, "padding_mask": MASK}
    outputs = small_roberta(causal=True)(inputs)
    wanted = expected(causal=True)
    states = outputs["sequence_output"]
    np.testing.assert_allclose(states[MASK], wanted.sequence_output[MASK], atol=2e-5)
    np.testing.assert_allclose(outputs["pooled_output"][:3], wanted.pooled_output[:3], atol=2e-5)


def test_segments_of_a_table_with_several_rows():
    model = Roberta(**CONFIG, num_segments=2)
    one, other = (
        np.asarray(model({**INPUTS, "segment_ids": ids})["sequence_output"])
        for ids in (np.zeros_like(TOKENS), np.ones_like(TOKENS))
    )
    assert np.abs(one - other)[MASK].max() > 1e-3


def test_the_first_two_rows_of_the_positions_are_never_read():
    model = small_roberta()
    before = np.asarray(model(INPUTS)["sequence_output"])
    table = model.embeddings.position_embedding.embeddings
    table.assign(np.concatenate([np.full((2, 12), 99.0), np.asarray(table)[2:]]))
    np.testing.assert_array_equal(model(INPUTS)["sequence_output"], before)


def test_a_sequence_that_is_too_long():
    small_roberta()({"token_ids": np.zeros((1, 9), "int32")})
    message = "must not be longer than `max_sequence_length`=9. Received: length 10"
    with pytest.raises(ValueError, match=message):
        small_roberta()({"token_ids": np.zeros((1, 10), "int32")})


def test_recomputed_blocks():
    check_recomputed_blocks(small_roberta)


def test_files(tmp_path):
    check_files(small_roberta, tmp_path)


def test_adapters(tmp_path):
    check_adapters(small_roberta, "houlsby", tmp_path)


def test_low_precision():
    outputs = small_roberta(dtype="mixed_bfloat16")(INPUTS)
    assert outputs["sequence_output"].dtype == "bfloat16"
    found = np.asarray(outputs["sequence_output"]).astype("float32")
    np.testing.assert_allclose(found[MASK], expected().sequence_output[MASK], atol=0.2)

"""DistilBert against the NumPy reference of BERT, without its segments and its pooler."""

from typing import Any

import numpy as np
import pytest

from kbert.models.distilbert import DistilBert
from kbert.models.weights import assign_arrays
from kbert.tasks.classification.head import SequenceClassification
from kbert.tasks.pretraining.head import Pretraining
from tests import numpy_reference as reference
from tests.check_layer import check_layer
from tests.models.check_encoder import (
    check_adapters,
    check_cannot_be_causal,
    check_files,
    check_numbers,
    check_recomputed_blocks,
)
from tests.small_bert import CONFIG, MASK, SHAPES, TOKENS

ABSENT = ("embeddings/segment_embedding/", "pooler/")
PATHS = {path: shape for path, shape in SHAPES.items() if not path.startswith(ABSENT)}
ARRAYS = reference.random_arrays(PATHS, seed=5)


def small_distilbert(**kwargs: Any) -> DistilBert:
    model = DistilBert(**{**CONFIG, **kwargs})
    assign_arrays(model, ARRAYS)
    return model


def expected() -> reference.BertOutputs:
    zeros = {path: np.zeros(s) for path, s in SHAPES.items() if path.startswith(ABSENT)}
    return reference.bert({**ARRAYS, **zeros}, TOKENS, 2, 3, None, MASK)


def test_ritual():
    inputs = {"token_ids": TOKENS, "padding_mask": np.ones((4, 6), bool)}
    check_layer(DistilBert, CONFIG, inputs, {"sequence_output": (4, 6, 12)}, PATHS)


def test_numbers_without_segments():
    check_numbers(small_distilbert(), expected())


def test_recomputed_blocks():
    check_recomputed_blocks(small_distilbert)


def test_files(tmp_path):
    check_files(small_distilbert, tmp_path)


def test_adapters(tmp_path):
    check_adapters(small_distilbert, "pfeiffer", tmp_path)


def test_it_cannot_be_causal():
    check_cannot_be_causal(small_distilbert)


def test_a_head_that_needs_a_pooler():
    message = '`head` must be "two_layer" for a DistilBert, which has no pooler. .*head=\'pooler\''
    with pytest.raises(ValueError, match=message):
        SequenceClassification(small_distilbert(), 3, "pooler")
    message = '`objective` must be "mlm" or "lm" for a DistilBert, which has no pooler'
    with pytest.raises(ValueError, match=message):
        Pretraining(small_distilbert(), "mlm_nsp")


def test_no_warning_of_a_pooler(caplog, tmp_path):
    DistilBert.from_pretrained(small_distilbert().save_pretrained(tmp_path / "saved"))
    assert "pooler" not in caplog.text

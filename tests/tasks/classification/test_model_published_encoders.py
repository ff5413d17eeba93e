"""Classifiers on RoBERTa, DistilBERT and ELECTRA: training, files and exports."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import kbert
from kbert.export_check.check import check
from kbert.models.distilbert import DistilBert
from kbert.models.electra import Electra
from kbert.models.roberta import Roberta
from kbert.tasks.classification.model import Classifier
from tests.small_pipelines import TOKENIZER, VOCABULARY, computed

TEXTS = (["a good film", "very bad !"] * 4, ["the film", "good good"] * 4)
LABELS = ["yes", "no"] * 4
KINDS: tuple[Any, ...] = (Roberta, DistilBert, Electra)


def small_classifier(kind: Any) -> Classifier:
    """One that reads pairs, so that there are segment ids of 1."""
    keras.utils.set_random_seed(3)
    rates = {"dropout": 0.0, "attention_dropout": 0.0, "initializer_range": 0.2}
    encoder = kind(len(VOCABULARY), 16, 2, 2, 32, max_sequence_length=32, **rates)
    return Classifier(encoder, TOKENIZER, ["no", "yes"], 24, pair=True, dropout=0.0)


# Electra is between the others: a projection of embeddings, and the blocks of both.
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] * (kind is Electra)) for kind in KINDS]
)
def test_every_variable_learns_and_files_keep_it(kind: Any, tmp_path: Path):
    model = small_classifier(kind)
    # Two steps take less than a graph of one.
    model.compile(keras.optimizers.Adam(3e-3), run_eagerly=True)
    before = [np.asarray(variable.numpy()) for variable in model.trainable_variables]
    history = model.fit(TEXTS, LABELS, epochs=2, batch_size=8, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]
    for variable, old in zip(model.trainable_variables, before, strict=True):
        assert np.any(np.asarray(variable.numpy()) != old), variable.path
    pairs = tuple(column[:2] for column in TEXTS)
    wanted = computed(model, pairs)
    again = kbert.load(
        model.save_pretrained(tmp_path / "model", format="huggingface"), pair=True
    )
    assert type(again.encoder) is kind
    np.testing.assert_allclose(computed(again, pairs), wanted, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_export(kind: Any, precision: str, tmp_path: Path):
    report = check(kbert.export(small_classifier(kind), tmp_path, "pairs", precision=precision))
    assert report.passed(), report.problems

"""Exports in other types of numbers: their sizes, and answers close to those of the model."""

import logging
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from kbert.export_check.check import check
from kbert.models.bert import Bert
from kbert.serving.export.export import export
from kbert.serving.format.version_folders import read_metadata
from kbert.serving.loading.exported import load_export
from kbert.serving.precision import conversion, rounding
from kbert.serving.precision.conversion import in_precision
from kbert.serving.precision.rounding import integer_layers, integer_matrices
from kbert.serving.precision.small_weights import is_stored_as_half
from kbert.tasks.classification.model import Classifier
from tests.serving.tiny_models import Meter
from tests.small_pipelines import TEXTS, TOKENIZER, VOCABULARY, computed


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    """Wide enough that most of its weights are large matrices."""
    keras.utils.set_random_seed(3)
    encoder = Bert(len(VOCABULARY), 64, 1, 2, 128, 32, initializer_range=0.1, name="encoder")
    return Classifier(encoder, TOKENIZER, ["no", "yes"], 24)


def scores(path: Path) -> np.ndarray:
    return load_export(path).predict(TEXTS)["scores"]


def of_rounded_rows(layer: Any, smoothing: np.ndarray | None, lowest: float | None) -> Any:
    """A dense layer whose inputs are smoothed and rounded to 127 steps, see `Rounding`."""
    original = layer.call
    factors = np.ones(1, "float32") if smoothing is None else smoothing[:, 0]

    def call(inputs: Any, training: bool | None = None, added: Any = None) -> Any:
        least, x = 0.0 if lowest is None else lowest, inputs / factors
        step = keras.ops.max(keras.ops.abs(x - least), axis=-1, keepdims=True) / 127
        rounded = keras.ops.round((x - least) / step) * step + least
        return original(rounded * factors, training, added)

    return call


def test_bfloat16_is_half_as_large_and_answers_alike(
    classifier: Classifier, tmp_path: Path, programs: Path
):
    path = export(classifier, tmp_path, "half", precision="bfloat16", max_batch_size=2)
    weights = read_metadata(path)["weights"]
    assert weights["dtypes"] == {"bfloat16": classifier.count_params()}
    assert weights["bytes"] == 2 * classifier.count_params()
    found = scores(path)
    assert found.dtype == np.float32
    # Eight bits of mantissa, a handful of products deep.
    expected = computed(classifier, TEXTS)
    np.testing.assert_allclose(found, expected, atol=2e-2)
    assert np.abs(found - expected).max() > 0
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-5)  # the softmax is made in float32
    assert check(path, folder=programs).problems == []
    assert "It computes in bfloat16" in (path / "assets.extra" / "README.md").read_text("utf-8")
    # The model is as it was.
    assert classifier.compute_dtype == "float32"


@pytest.mark.slow
def test_int8_is_a_quarter_of_the_matrices(
    classifier: Classifier, tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
):
    path = export(classifier, tmp_path, "small", precision="int8", max_batch_size=2)
    matrices = [v for v in classifier.weights if len(v.shape) == 2 and np.prod(v.shape) >= 2048]
    weights = read_metadata(path)["weights"]
    assert weights["dtypes"]["int8"] == sum(int(np.prod(v.shape)) for v in matrices)
    assert weights["bytes"] < 0.35 * 4 * classifier.count_params()
    # The same numbers in float32: matrices that were rounded, and rows of activations as well. A
    # number between two codes may become either, which moves a score by some thousandths.
    rounded = in_precision(classifier, "int8")
    roundings = integer_matrices(rounded)
    for layer in integer_layers(rounded):
        how = roundings[id(layer.kernel)]
        monkeypatch.setattr(layer, "call", of_rounded_rows(layer, how.smoothing, how.lowest))
    found = scores(path)
    np.testing.assert_allclose(found, computed(rounded, TEXTS), atol=3e-3)
    np.testing.assert_allclose(found, computed(classifier, TEXTS), atol=3e-2)
    assert check(path, folder=programs).problems == []
    card = (path / "assets.extra" / "README.md").read_text("utf-8")
    assert "int8" in card and read_metadata(path)["precision"] == "int8"


def test_float32_of_a_model_in_another_type(classifier: Classifier):
    half = in_precision(classifier, "bfloat16")
    assert {v.dtype for v in half.weights} == {"bfloat16"}
    back = in_precision(half, "float32")
    for one, other in zip(back.weights, half.weights):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other).astype("float32"))
    assert in_precision(classifier, None) is classifier
    assert in_precision(classifier, "float32") is classifier
    assert in_precision(half, "bfloat16") is half


def test_what_cannot_be_had(classifier: Classifier):
    with pytest.raises(ValueError, match="must be one of .*Received: precision='int4'"):
        in_precision(classifier, "int4")
    with pytest.raises(ValueError, match="must be a Keras model to be exported in another"):
        in_precision(Meter(), "bfloat16")
    assert isinstance(in_precision(Meter(), "float32"), Meter)


def test_a_processor_without_is_told(
    classifier: Classifier, monkeypatch: pytest.MonkeyPatch, caplog: Any
):
    monkeypatch.setattr(conversion, "computes_bfloat16", lambda: False)
    with caplog.at_level(logging.WARNING):
        in_precision(classifier, "bfloat16")
    assert "no instructions for bfloat16" in caplog.text
    monkeypatch.setattr(rounding, "has_integer_products", lambda: False)
    with caplog.at_level(logging.WARNING):
        in_precision(classifier, "int8")
    assert "No layer of this export multiplies integers" in caplog.text


def test_a_table_of_halves_in_a_mixed_model(tmp_path: Path):
    """As the encoder of a published half-precision file: what is looked up has the layers' type."""
    keras.utils.set_random_seed(3)
    encoder = Bert(
        len(VOCABULARY), 64, 1, 2, 128, 32, initializer_range=0.1, dtype="mixed_bfloat16"
    )
    table = encoder.embeddings.token_embedding.embeddings
    table.assign(np.asarray(table).astype("float16"))
    model = Classifier(encoder, TOKENIZER, ["no", "yes"], 24)
    assert is_stored_as_half(table)
    found = scores(export(model, tmp_path, "mixed"))
    np.testing.assert_allclose(found, computed(model, TEXTS), atol=1e-2)

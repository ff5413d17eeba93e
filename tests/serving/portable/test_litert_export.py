"""Exports as LiteRT: the interpreter gives what the Keras model gives, in any shape."""

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

from kbert.models.bert import Bert
from kbert.serving.portable.litert_export import LITERT_FILE, export_litert
from kbert.tasks.classification.model import Classifier
from tests.serving.portable.run_onnx import as_kbert, token_inputs
from tests.small_pipelines import (
    TOKENIZER,
    VOCABULARY,
    small_classifier,
    small_embedder,
    small_question_answerer,
    small_regressor,
)

CLOSE = {"rtol": 0, "atol": 1e-4}


def runner_of(folder):
    return Interpreter(model_path=str(folder / LITERT_FILE)).get_signature_runner()


def as_int32(inputs):
    return {name: array.astype("int32") for name, array in inputs.items()}


def test_a_classifier_in_three_shapes(tmp_path):
    model = small_classifier()
    model.encoder.add_adapter("task", "lora")
    for weight in model.encoder.adapters.weights:
        weight.assign(np.random.default_rng(1).normal(0.0, 0.3, weight.shape))
    model.encoder.set_active_adapters("task")
    folder = export_litert(model, tmp_path, "lite")
    assert (folder / "tokenizer.json").is_file() and (folder / "config.json").is_file()
    assert "| input | `input_ids` | int32 | any, any |" in (folder / "README.md").read_text()
    run, inputs = runner_of(folder), token_inputs(model.encoder)
    for rows, length in ((3, 9), (1, 4), (3, 7)):
        part = {name: array[:rows, :length] for name, array in inputs.items()}
        found = run(**as_int32(part))["logits"]
        np.testing.assert_allclose(found, model(as_kbert(part)), **CLOSE)


def test_a_reader(tmp_path):
    model = small_question_answerer()
    inputs = token_inputs(model.encoder)
    found = runner_of(export_litert(model, tmp_path))(**as_int32(inputs))
    expected = model(as_kbert(inputs))
    assert sorted(found) == ["end_logits", "start_logits"]
    np.testing.assert_allclose(found["start_logits"], expected[..., 0], **CLOSE)
    np.testing.assert_allclose(found["end_logits"], expected[..., 1], **CLOSE)


def test_a_number_is_a_column(tmp_path):
    model = small_regressor()
    inputs = token_inputs(model.encoder)
    found = runner_of(export_litert(model, tmp_path))(**as_int32(inputs))["logits"]
    np.testing.assert_allclose(found, np.asarray(model(as_kbert(inputs)))[:, None], **CLOSE)


def test_what_is_refused(tmp_path):
    with pytest.raises(ValueError, match="must classify, score or read texts .* a TextEmbedder"):
        export_litert(small_embedder(), tmp_path)
    causal = Classifier(Bert(len(VOCABULARY), 16, 1, 2, 32, causal=True), TOKENIZER, ["a", "b"])
    with pytest.raises(ValueError, match="an encoder that is not causal"):
        export_litert(causal, tmp_path)
    with pytest.raises(ValueError, match="must compute in float32 .* Received: bfloat16"):
        export_litert(small_classifier(dtype="bfloat16"), tmp_path)
    assert not list(tmp_path.iterdir())

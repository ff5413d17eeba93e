"""Models of transformers on RoBERTa, DistilBERT and ELECTRA become models of kbert's tasks."""

import json
import logging
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from kbert.checkpoints.huggingface_files import read_huggingface
from kbert.tasks.classification.model import Classifier
from kbert.tasks.load import load
from kbert.tasks.multiple_choice.model import MultipleChoice
from kbert.tasks.pretraining.model import MaskedLanguageModel
from tests.checkpoints.synthetic_bert import same_bytes
from tests.checkpoints.synthetic_encoders import DISTILBERT, ELECTRA, ROBERTA, Synthetic

TAGS = {"id2label": {"0": "O", "1": "B-X", "2": "I-X"}}
CASES = [
    (one, f"{prefix}For{kind}", task)
    for one, prefix in ((ROBERTA, "Roberta"), (DISTILBERT, "DistilBert"), (ELECTRA, "Electra"))
    for kind, task in {
        "SequenceClassification": "Classifier",
        "TokenClassification": "EntityRecognizer",
        "MultipleChoice": "MultipleChoice",
        "QuestionAnswering": "QuestionAnswerer",
        "MaskedLM": "MaskedLanguageModel",
    }.items()
]


@pytest.mark.parametrize(("one", "kind", "task"), CASES, ids=[kind for _, kind, _ in CASES])
def test_a_model_of_each_class_comes_back(tmp_path: Path, one: Synthetic, kind: str, task: str):
    tags = TAGS if kind.endswith(("SequenceClassification", "TokenClassification")) else {}
    folder = one.write(tmp_path / "source", kind, **tags)
    model = load(folder)
    assert type(model).__name__ == task
    assert model.encoder.architecture == one.name
    native = load(model.save_pretrained(tmp_path / "native"))
    back = native.save_pretrained(tmp_path / "back", format="huggingface")
    before, after = (load_file(path / "model.safetensors") for path in (folder, back))
    assert before.keys() == after.keys()
    assert all(same_bytes(before[name], after[name]) for name in before)
    assert json.loads((back / "config.json").read_text())["architectures"] == [kind]


def test_a_head_that_transformers_have_not(tmp_path: Path):
    roberta = Classifier.from_pretrained(
        ROBERTA.write(tmp_path / "a"), labels=["a", "b"], head="pooler"
    )
    message = '`head` must be "two_layer" for format "huggingface".*Received: head=\'pooler\''
    with pytest.raises(ValueError, match=message):
        roberta.save_pretrained(tmp_path / "b", format="huggingface")
    folder = ROBERTA.write(tmp_path / "c", "RobertaForSequenceClassification")
    with pytest.raises(ValueError, match="`head` must be 'two_layer', as that of"):
        Classifier.from_pretrained(folder, head="pooler")


def test_a_discriminator_is_an_encoder_with_a_new_head(tmp_path: Path):
    folder = ELECTRA.write(tmp_path / "model", "ElectraForPreTraining")
    model = Classifier.from_pretrained(folder, labels=["a", "b"])
    assert model.head == "two_layer"
    with pytest.raises(ValueError, match="an encoder without a task"):
        load(folder)
    masks = MaskedLanguageModel.from_pretrained(folder)
    assert masks.objective == "mlm"


def test_a_pooler_is_missed_by_what_reads_it_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    folder = ROBERTA.write(tmp_path / "model", "RobertaForMaskedLM")
    assert read_huggingface(folder).lacks_pooler
    with caplog.at_level(logging.WARNING):
        Classifier.from_pretrained(folder, labels=["a", "b"])
    assert "pooler" not in caplog.text
    with caplog.at_level(logging.WARNING):
        MultipleChoice.from_pretrained(folder)
    assert "no pooler: it starts from random weights" in caplog.text


def test_what_transformers_adds_to_an_output_matrix_of_its_own(tmp_path: Path):
    tensors = ROBERTA.tensors("RobertaForMaskedLM")
    draw = np.random.default_rng(3)
    own = {
        "lm_head.decoder.weight": draw.normal(size=(11, 4)).astype("float32"),
        "lm_head.decoder.bias": draw.normal(size=(11,)).astype("float32"),
    }
    more = {"architectures": ["RobertaForMaskedLM"], "tie_word_embeddings": False}
    folder = ROBERTA.write_tensors(tmp_path / "source", tensors | own, **more)
    model = load(load(folder).save_pretrained(tmp_path / "native"))
    assert not model.tied and model.get_config()["tied"] is False
    decoder = model.token_head.decoder
    np.testing.assert_array_equal(decoder.kernel, own["lm_head.decoder.weight"].T)
    np.testing.assert_array_equal(decoder.bias, own["lm_head.decoder.bias"])
    back = model.save_pretrained(tmp_path / "back", format="huggingface")
    written = load_file(back / "model.safetensors")
    assert written.keys() == (tensors | own).keys()
    for name, array in own.items():
        np.testing.assert_array_equal(written[name], array)
    # The other bias is not read beside it.
    np.testing.assert_array_equal(written["lm_head.bias"], own["lm_head.decoder.bias"])
    assert json.loads((back / "config.json").read_text())["tie_word_embeddings"] is False


def test_several_labels_and_a_number(tmp_path: Path):
    kind = "DistilBertForSequenceClassification"
    several = {"problem_type": "multi_label_classification", "architectures": [kind]}
    tensors = DISTILBERT.tensors(kind)
    model = load(DISTILBERT.write_tensors(tmp_path / "labels", tensors, **several))
    assert type(model).__name__ == "MultiLabelClassifier"
    assert model.sequence_head.activation == "relu"
    kind = "RobertaForSequenceClassification"
    tensors = ROBERTA.tensors(kind)
    one = {name: a[:1].copy() if "out_proj" in name else a for name, a in tensors.items()}
    number = {"problem_type": "regression", "architectures": [kind]}
    folder = ROBERTA.write_tensors(tmp_path / "number", one, **number)
    model = load(folder)
    assert type(model).__name__ == "Regressor" and model.head == "two_layer"
    back = load_file(
        model.save_pretrained(tmp_path / "back", format="huggingface") / "model.safetensors"
    )
    assert all(same_bytes(back[name], array) for name, array in one.items())

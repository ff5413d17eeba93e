"""One function that loads whatever was saved."""

import subprocess
import sys

import numpy as np
import pytest

from kbert.checkpoints.read_checkpoint import read_checkpoint
from kbert.tasks.load import load
from tests.checkpoints.synthetic_bert import hf_tensors, write_hf
from tests.small_pipelines import (
    TEXTS,
    computed,
    small_classifier,
    small_encoder,
    small_entity_recognizer,
    small_masked_language_model,
    small_multi_label_classifier,
    small_multiple_choice,
    small_question_answerer,
    small_regressor,
    small_span_tagger,
)


@pytest.mark.parametrize("format", ["kbert", "huggingface"])
@pytest.mark.parametrize(
    "made",
    [small_classifier, small_regressor, small_multi_label_classifier, small_multiple_choice],
)
def test_every_task(tmp_path, format, made):
    model = made()
    folder = model.save_pretrained(tmp_path / "saved", format=format)
    again = load(folder, max_sequence_length=24)
    assert type(again) is type(model)
    x = (TEXTS, [["a", "b"]] * len(TEXTS)) if made is small_multiple_choice else TEXTS
    np.testing.assert_allclose(computed(again, x), computed(model, x), atol=1e-5)


@pytest.mark.parametrize("format", ["kbert", "huggingface"])
@pytest.mark.parametrize(
    "made", [small_question_answerer, small_span_tagger, small_entity_recognizer]
)
def test_every_task_that_reads(tmp_path, format, made):
    folder = made().save_pretrained(tmp_path / "saved", format=format)
    sizes = {} if format == "kbert" else {"max_sequence_length": 24, "stride": 4}
    if sizes and made is not small_entity_recognizer:
        sizes["max_question_length"] = 6
    assert type(load(folder, **sizes)) is type(made())


def test_weights_are_read_once(tmp_path, monkeypatch):
    folder = small_regressor().save_pretrained(tmp_path / "saved")
    read = []
    for module in ("tasks.load", "pipelines.saved_pipeline"):
        monkeypatch.setattr(
            f"kbert.{module}.read_checkpoint",
            lambda path: read.append(path) or read_checkpoint(path),
        )
    load(folder)
    assert read == [folder]


@pytest.mark.parametrize("format", ["kbert", "huggingface", "tf1"])
def test_a_pretrained_model(tmp_path, format):
    model = small_masked_language_model()
    again = load(model.save_pretrained(tmp_path / "saved", format=format))
    assert type(again) is type(model) and again.objective == "mlm_nsp"
    if format == "kbert":
        assert again.get_config() == model.get_config()


@pytest.mark.slow
def test_a_keras_file_in_a_process_that_knows_no_class(tmp_path, repository):
    model = small_regressor()
    model.compile("sgd")
    model.save(tmp_path / "model.keras")
    program = "import sys; from kbert.tasks.load import load; model = load(sys.argv[1]); "
    program += "print(type(model).__name__, model.compiled)"
    run = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "model.keras")],
        cwd=repository,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.stdout.split() == ["Regressor", "True"], run.stderr[-2000:]


def test_arguments(tmp_path):
    folder = small_classifier().save_pretrained(tmp_path / "saved")
    model = load(folder, dtype="mixed_bfloat16", labels=["x", "y", "z"])
    assert model.dtype_policy.name == "mixed_bfloat16" and model.labels == ["x", "y", "z"]


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"Received: '.*modle\.keras', no such file"):
        load(tmp_path / "modle.keras")


@pytest.mark.parametrize("folder", ["nothing", "minilm-sqad"])
def test_what_is_neither_a_folder_nor_known(folder, tmp_path):
    path = tmp_path / folder if folder == "nothing" else folder
    with pytest.raises(FileNotFoundError, match="^`directory` must be .*Received"):
        load(path)


def test_an_encoder_alone(tmp_path):
    folder = small_encoder().save_pretrained(tmp_path / "saved")
    message = (
        r"`directory` must hold one of \['Classifier', .*, 'QuestionAnswerer', 'SpanTagger', "
        r"'EntityRecognizer', 'Translator', 'Captioner', 'MaskedLanguageModel'\]. "
        r"Received: .*saved, an "
        "encoder without a task"
    )
    with pytest.raises(ValueError, match=message):
        load(folder)


def test_an_unknown_task(tmp_path):
    heads = {"cls.seq_relationship.weight": (2, 4), "cls.seq_relationship.bias": (2,)}
    source = write_hf(
        tmp_path / "source",
        hf_tensors(prefix="bert.", heads=heads),
        architectures=["BertForNextSentencePrediction"],
    )
    with pytest.raises(ValueError, match="Received: .*source, an encoder without a task"):
        load(source)

"""One function that loads whatever was saved."""

import subprocess
import sys

import numpy as np
import pytest

from kbert.pipelines.load import load
from tests.checkpoints.synthetic_bert import hf_tensors, write_hf
from tests.small_pipelines import (
    TEXTS,
    computed,
    small_classifier,
    small_encoder,
    small_multiple_choice,
    small_regressor,
)


@pytest.mark.parametrize("format", ["kbert", "huggingface"])
@pytest.mark.parametrize("made", [small_classifier, small_regressor, small_multiple_choice])
def test_every_task(tmp_path, format, made):
    model = made()
    folder = model.save_pretrained(tmp_path / "saved", format=format)
    again = load(folder, max_sequence_length=24)
    assert type(again) is type(model)
    x = (TEXTS, [["a", "b"]] * len(TEXTS)) if made is small_multiple_choice else TEXTS
    np.testing.assert_allclose(computed(again, x), computed(model, x), atol=1e-5)


def test_a_keras_file_in_a_process_that_knows_no_class(tmp_path, repository):
    model = small_regressor()
    model.compile("sgd")
    model.save(tmp_path / "model.keras")
    program = "import sys; from kbert.pipelines.load import load; model = load(sys.argv[1]); "
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


def test_an_encoder_alone(tmp_path):
    folder = small_encoder().save_pretrained(tmp_path / "saved")
    message = (
        r"`directory` must hold one of \['Classifier', 'Regressor', 'MultipleChoice'\]. "
        "Received: .*saved, an encoder without a task"
    )
    with pytest.raises(ValueError, match=message):
        load(folder)


def test_an_unknown_task(tmp_path):
    heads = {"classifier.weight": (3, 4), "classifier.bias": (3,)}
    source = write_hf(
        tmp_path / "source",
        hf_tensors(prefix="bert.", pooler=False, heads=heads),
        architectures=["BertForTokenClassification"],
    )
    with pytest.raises(ValueError, match="Received: .*source, an encoder without a task"):
        load(source)

"""A classifier on an encoder that kbert does not have: a line of the table is all it needs."""

from pathlib import Path

import keras
import numpy as np
import pytest

import kbert
from kbert.architectures import ENCODERS, EncoderParts
from kbert.export_check.check import check
from kbert.models.encoder import Encoder
from kbert.tasks.classification.model import Classifier
from tests.models import averages
from tests.small_pipelines import TOKENIZER, VOCABULARY, computed

TEXTS = ["a good film", "very bad !", "the film", "good good"] * 2
LABELS = ["yes", "no", "no", "yes"] * 2


@pytest.fixture(autouse=True)
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    module = averages.__name__
    monkeypatch.setitem(
        ENCODERS, averages.NAME, EncoderParts(f"{module}.Averages", layout=module)
    )


@pytest.fixture(scope="module")
def trained() -> Classifier:
    keras.utils.set_random_seed(3)
    encoder = averages.Averages(len(VOCABULARY), 8)
    model = Classifier(encoder, TOKENIZER, ["no", "yes"], max_sequence_length=24, dropout=0.0)
    model.compile(keras.optimizers.Adam(1e-2))
    losses = model.fit(TEXTS, LABELS, epochs=3, batch_size=4, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    return model


def test_files(trained: Classifier, tmp_path: Path):
    assert isinstance(trained.encoder, Encoder)
    trained.save(tmp_path / "model.keras")
    expected = computed(trained, TEXTS)
    for path in (trained.save_pretrained(tmp_path / "model"), tmp_path / "model.keras"):
        again = kbert.load(path)
        assert type(again.encoder) is averages.Averages
        np.testing.assert_allclose(computed(again, TEXTS), expected, atol=1e-6)


def test_arguments_of_runs_that_it_lacks(trained: Classifier, tmp_path: Path):
    encoder = trained.encoder.save_pretrained(tmp_path / "encoder")
    of_runs = {"attention_dropout": 0.2, "causal": False, "gradient_checkpointing": False}
    assert type(averages.Averages.from_pretrained(encoder, **of_runs)) is averages.Averages
    model = trained.save_pretrained(tmp_path / "model")
    again = Classifier.from_pretrained(model, from_other_task=True, gradient_checkpointing=False)
    assert type(again.encoder) is averages.Averages
    for name in ("causal", "gradient_checkpointing"):
        message = f"`{name}` must be False for a Averages. Received: {name}=True"
        with pytest.raises(ValueError, match=message):
            averages.Averages.from_pretrained(encoder, **{name: True})


def test_a_format_that_has_no_such_encoder(trained: Classifier, tmp_path: Path):
    with pytest.raises(ValueError, match="that transformers has. Received: an encoder of averages"):
        trained.save_pretrained(tmp_path / "model", format="huggingface")


@pytest.mark.slow
def test_an_export(trained: Classifier, tmp_path: Path):
    report = check(kbert.export(trained, tmp_path, "topics"))
    assert report.passed(), report.problems

"""Several tasks in one export: what they share is stored once, and each answers as it did."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import kbert
from kbert.models.adapter_bert import AdapterBert
from kbert.models.encoder_arrays import named_weights
from kbert.pipelines.classification import Classifier
from kbert.pipelines.ner import EntityRecognizer
from kbert.pipelines.question_answering import QuestionAnswerer
from kbert.serving.check import check
from kbert.serving.exported import load_export
from kbert.serving.metadata import read_metadata
from kbert.serving.saved_model import export
from kbert.serving.together import Together, export_together
from kbert.text.wordpiece import WordPiece
from tests.small_pipelines import TAGS, TEXTS, VOCABULARY

SIZES = (len(VOCABULARY), 64, 1, 2, 128, 32)


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    """Three tasks on one encoder; the second and the third have adapters, all different."""
    keras.utils.set_random_seed(3)
    tokenizer = WordPiece(VOCABULARY)
    adapted = {"adapter_dim": 2, "initializer_range": 0.2}
    windows = {"max_sequence_length": 24, "stride": 4}
    made: dict[str, Any] = {
        "topics": Classifier(
            kbert.Bert(*SIZES, initializer_range=0.2), tokenizer, ["no", "yes"], 24
        ),
        "names": EntityRecognizer(
            AdapterBert(*SIZES, **adapted), WordPiece(VOCABULARY), TAGS, **windows
        ),
        "answers": QuestionAnswerer(
            AdapterBert(*SIZES, **adapted), tokenizer, max_question_length=8, **windows
        ),
    }
    body = named_weights(made["topics"].encoder)
    for name in ("names", "answers"):
        for weight, variable in named_weights(made[name].encoder).items():
            if weight in body and not weight.startswith("pooler/"):
                variable.assign(body[weight])
            else:
                variable.assign(keras.random.normal(variable.shape, stddev=0.3))
    # A LayerNorm that was trained with the adapters.
    weights = named_weights(made["names"].encoder)
    gamma = weights["encoder_block_0/attention_residual/layer_norm/gamma"]
    gamma.assign(gamma * 1.5)
    return made


@pytest.fixture(scope="module")
def path(models: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_together(models, tmp_path_factory.mktemp("together"), "all", max_batch_size=4)


def test_each_answers_as_it_did(models: dict[str, Any], path: Path):
    found = load_export(path)
    assert found.tasks == ["topics", "names", "answers"]
    scores = models["topics"].predict(TEXTS)
    for signature in ("topics", "serving_default"):
        told = found.predict(TEXTS, signature=signature)["scores"]
        np.testing.assert_allclose(told, scores, atol=1e-5)
    texts = [text for text in TEXTS if isinstance(text, str)]
    entities = [one["entities"] for one in found.answers(texts, signature="names")]
    expected = models["names"].answers(texts)
    assert [[one["entity"] for one in row] for row in entities] == [
        [one["entity"] for one in row] for row in expected
    ]
    assert any(expected)
    answered = found.answers(texts, texts, signature="answers")
    own = models["answers"].answers((texts, texts))
    assert [one["answer"] for one in answered] == [one["answer"] for one in own]


def test_what_is_shared_is_stored_once(models: dict[str, Any], path: Path, programs: Path):
    # The encoder's body once; heads, adapters, the LayerNorm and the pooler that is used, each.
    expected = models["topics"].count_params()
    body = set(named_weights(models["topics"].encoder))
    for name in ("names", "answers"):
        weights = named_weights(models[name].encoder)
        expected += sum(int(np.prod(v.shape)) for w, v in weights.items() if w not in body)
        expected += models[name].count_params() - models[name].encoder.count_params()
        expected += 64 * 64 + 64  # the pooler, which is another one
    expected += 64  # gamma, of `names`
    assert read_metadata(path)["weights"]["parameters"] == expected
    assert check(path, folder=programs).problems == []


def test_tables_of_the_tokenizer_lie_there_once(models: dict[str, Any], path: Path, tmp_path: Path):
    own = {name: model.tokenizer for name, model in models.items()}
    assert own["names"] is not own["topics"]  # they are back
    alone = export(models["names"], tmp_path, max_batch_size=4)
    graph = read_metadata(alone)["graph_bytes"]
    assert read_metadata(path)["graph_bytes"] < 3 * graph


def test_what_it_says_of_itself(path: Path):
    metadata = read_metadata(path)
    assert metadata["class"] == "Together"
    assert metadata["tasks"]["topics"] == {
        "class": "Classifier",
        "labels": ["no", "yes"],
        "max_sequence_length": 24,
        "pair": False,
    }
    assert set(metadata["signatures"]) == {"serving_default", "topics", "names", "answers"}
    card = (path / "assets.extra" / "README.md").read_text("utf-8")
    assert "several tasks with one encoder" in card and "| `names` | EntityRecognizer" in card


def test_in_other_precisions(models: dict[str, Any], tmp_path: Path, programs: Path):
    scores = models["topics"].predict(TEXTS)
    for precision, least in (("bfloat16", 0.51), ("int8", 0.4)):
        path = export_together(models, tmp_path, precision, precision=precision, max_batch_size=2)
        weights = read_metadata(path)["weights"]
        # The heads that read token by token stay float32.
        assert weights["bytes"] <= least * 4 * weights["parameters"]
        assert check(path, folder=programs).problems == []
        found = load_export(path).predict(TEXTS, signature="topics")["scores"]
        np.testing.assert_allclose(found, scores, atol=5e-2)


def test_another_encoder_is_refused(models: dict[str, Any], tmp_path: Path):
    encoder = models["answers"].encoder
    kernel = named_weights(encoder)["encoder_block_0/feed_forward/output/kernel"]
    before = np.asarray(kernel)
    kernel.assign(before * 1.01)
    with pytest.raises(
        ValueError,
        match="must share one frozen encoder.*'answers' differs from 'topics' in 1 of .* "
        "weights: encoder_block_0/feed_forward/output/kernel",
    ):
        export_together(models, tmp_path)
    kernel.assign(before)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["serving_default", "a b", "", "1"])
def test_names_that_cannot_be(models: dict[str, Any], tmp_path: Path, name: str):
    with pytest.raises(ValueError, match=f"must begin with a letter.*Received: '{name}'"):
        export_together({name: models["topics"]}, tmp_path)


def test_what_has_no_encoder(tmp_path: Path):
    with pytest.raises(ValueError, match="must hold at least one model. Received: none"):
        export_together({}, tmp_path)
    with pytest.raises(ValueError, match="with an `encoder`. Received: object as 'a'"):
        export_together({"a": object()}, tmp_path)
    assert kbert.export_together is export_together
    assert Together("x", {}).tasks == {}

"""Several tasks in one export: what they share is stored once, and each answers as it did."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import kbert
from kbert.data.batches.packed_examples import text_tensor
from kbert.export_check.check import check
from kbert.models.weights import named_weights
from kbert.serving.export.multi_task_export import Together, export_together
from kbert.serving.format.signatures import read_meta_graph
from kbert.serving.format.version_folders import read_metadata
from kbert.serving.loading.exported import load_export
from kbert.tasks.classification.head import SequenceClassification
from kbert.tasks.classification.model import Classifier
from kbert.tasks.ner.model import EntityRecognizer
from kbert.tasks.question_answering.model import QuestionAnswerer
from kbert.text.wordpiece.wordpiece import WordPiece
from tests.serving.tiny_models import Meter
from tests.small_pipelines import TAGS, TEXTS, VOCABULARY, computed, small_encoder

SIZES = (len(VOCABULARY), 64, 1, 2, 128, 32)


def adapted_bert() -> kbert.Bert:
    encoder = kbert.Bert(*SIZES, initializer_range=0.2)
    encoder.add_adapter("task", {"kind": "houlsby", "adapter_dim": 2})
    encoder.train_adapter("task")
    return encoder


@pytest.fixture(scope="module")
def all_models() -> dict[str, Any]:
    """Four tasks on one encoder; all but the first have adapters, all different."""
    keras.utils.set_random_seed(3)
    tokenizer = WordPiece(VOCABULARY)
    windows = {"max_sequence_length": 24, "stride": 4}
    made: dict[str, Any] = {
        "topics": Classifier(
            kbert.Bert(*SIZES, initializer_range=0.2), tokenizer, ["no", "yes"], 24
        ),
        "moods": Classifier(
            adapted_bert(), WordPiece(VOCABULARY), ["sad", "glad", "calm"], 24
        ),
        "answers": QuestionAnswerer(
            adapted_bert(), tokenizer, max_question_length=8, **windows
        ),
        "names": EntityRecognizer(adapted_bert(), tokenizer, TAGS, **windows),
    }
    body = named_weights(made["topics"].encoder)
    for name in ("moods", "answers", "names"):
        for weight, variable in named_weights(made[name].encoder).items():
            if weight in body and not weight.startswith("pooler/"):
                variable.assign(body[weight])
            else:
                variable.assign(keras.random.normal(variable.shape, stddev=0.3))
    return made


@pytest.fixture(scope="module")
def models(all_models: dict[str, Any]) -> dict[str, Any]:
    """Those whose graphs are traced within a second."""
    return {name: all_models[name] for name in ("topics", "moods", "answers")}


@pytest.fixture(scope="module")
def path(models: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_together(models, tmp_path_factory.mktemp("together"), "all", max_batch_size=1)


def test_each_answers_as_it_did(models: dict[str, Any], path: Path):
    found = load_export(path)
    assert found.tasks == ["topics", "moods", "answers"]
    for name, signature in (("topics", "topics"), ("topics", "serving_default"), ("moods",) * 2):
        told = found.predict(TEXTS, signature=signature)["scores"]
        np.testing.assert_allclose(told, computed(models[name], TEXTS), atol=1e-5)
    answered = found.predict(TEXTS, TEXTS, signature="answers")
    own = models["answers"].answer(text_tensor(TEXTS), text_tensor(TEXTS))
    for name in ("answer", "start", "end"):
        assert answered[name].tolist() == own[name].numpy().tolist()
    assert any(answered["answer"])


@pytest.mark.slow
def test_a_recognizer_beside_others(
    all_models: dict[str, Any], tmp_path: Path, programs: Path
):
    path = export_together(all_models, tmp_path, "all", max_batch_size=4)
    found = load_export(path).predict(TEXTS, signature="names")
    own = all_models["names"].recognize(text_tensor(TEXTS))
    for name in ("entity", "label", "start", "end"):
        assert found[name].tolist() == own[name].numpy().tolist()
    assert any(found["count"])
    assert check(path, folder=programs).problems == []


@pytest.mark.slow
def test_what_is_shared_is_stored_once(models: dict[str, Any], path: Path, programs: Path):
    # The encoder's body once; heads, adapters and the pooler that is used, each.
    expected = models["topics"].count_params()
    body = set(named_weights(models["topics"].encoder))
    for name in ("moods", "answers"):
        weights = named_weights(models[name].encoder)
        expected += sum(int(np.prod(v.shape)) for w, v in weights.items() if w not in body)
        expected += models[name].count_params() - models[name].encoder.count_params()
        expected += 64 * 64 + 64  # the pooler, which is another one
    assert read_metadata(path)["weights"]["parameters"] == expected
    assert check(path, folder=programs).problems == []


def test_tables_of_the_tokenizer_lie_there_once(models: dict[str, Any], path: Path):
    own = {name: model.tokenizer for name, model in models.items()}
    assert own["moods"] is not own["topics"]  # they are back
    graph = read_meta_graph(path).graph_def
    groups = [graph.node, *(function.node_def for function in graph.library.function)]
    constants = [node.attr["value"].tensor for group in groups for node in group]
    tables = [one.tensor_content for one in constants if len(one.tensor_content) > 10_000]
    assert tables and len(set(tables)) == len(tables)


def test_what_it_says_of_itself(path: Path):
    metadata = read_metadata(path)
    assert metadata["class"] == "Together"
    assert metadata["tasks"]["topics"] == {
        "class": "Classifier",
        "labels": ["no", "yes"],
        "max_sequence_length": 24,
        "pair": False,
    }
    assert set(metadata["signatures"]) == {"serving_default", "topics", "moods", "answers"}
    card = (path / "assets.extra" / "README.md").read_text("utf-8")
    assert "several tasks with one encoder" in card and "| `answers` | QuestionAnswerer" in card


@pytest.mark.parametrize(
    "precision, least, run",
    [
        ("int8", 0.4, False),
        pytest.param("int8", 0.4, True, marks=pytest.mark.slow),
        pytest.param("bfloat16", 0.51, True, marks=pytest.mark.slow),
    ],
)
def test_in_other_precisions(
    models: dict[str, Any], tmp_path: Path, programs: Path, precision: str, least: float, run: bool
):
    chosen = {name: models[name] for name in ("topics", "answers")}
    path = export_together(chosen, tmp_path, precision=precision, max_batch_size=1)
    weights = read_metadata(path)["weights"]
    # The heads that read token by token stay float32.
    assert weights["bytes"] <= least * 4 * weights["parameters"]
    assert check(path, run=run, folder=programs).problems == []
    found = load_export(path).predict(TEXTS, signature="topics")["scores"]
    np.testing.assert_allclose(found, computed(models["topics"], TEXTS), atol=5e-2)


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
    with pytest.raises(TypeError, match=r"must have `signatures\(\)`, .*: SequenceClassification"):
        export_together({"a": SequenceClassification(small_encoder(), 2)}, tmp_path)
    with pytest.raises(ValueError, match="with an `encoder`. Received: .* as 'a'"):
        export_together({"a": Meter()}, tmp_path)
    assert kbert.export_together is export_together
    assert Together("x", {}).tasks == {}

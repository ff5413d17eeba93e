"""`kbert.pipeline`: names of tasks, default models, forms of inputs, and models of other tasks."""

from typing import Any

import pytest

import kbert
from kbert.serving.export.export import export
from kbert.serving.loading import pipeline as module
from kbert.serving.loading.exported import Exported, load_export
from kbert.serving.loading.pipeline import Pipeline, pipeline
from kbert.tasks.classification.model import Classifier
from tests.local_server.page_models import Teller
from tests.small_captioner import files_of, shapes
from tests.small_pipelines import small_question_answerer


@pytest.fixture
def saved(classifier: Classifier, tmp_path):
    """A folder of a classifier."""
    classifier.save_pretrained(tmp_path / "saved")
    return tmp_path / "saved"


def test_it_is_public():
    assert kbert.pipeline is pipeline


@pytest.mark.parametrize("task", ["text-classification", "sentiment-analysis", "classification"])
def test_a_classifier_by_each_name_of_its_task(task, saved, classifier: Classifier):
    found = pipeline(task, saved)
    assert type(found.model) is Classifier and found.task == "classification"
    (expected,) = classifier.answers(["a text"])
    assert found("a text")["label"] == expected["label"]
    assert [one["label"] for one in found(["a text"])] == [expected["label"]]
    assert found([]) == []


def test_an_export(exported_path, exported: Exported):
    found = pipeline("text-classification", exported_path)
    assert isinstance(found.model, Exported)
    assert found("a text")["label"] == exported.answers(["a text"])[0]["label"]


@pytest.mark.parametrize("task, key", [("ner", "entities"), ("span-tagging", "answers")])
def test_an_export_answers_with_the_lists_of_the_model(monkeypatch, task: str, key: str):
    found = [[{"text": "ann"}], []]
    monkeypatch.setattr(Exported, "answers", lambda self, texts: [{key: one} for one in found])
    answering = Pipeline(task, Exported.__new__(Exported))
    assert answering(["ann came", "no"]) == found and answering("ann came") == found[0]


def test_columns_by_name_and_by_place():
    reader = small_question_answerer()
    found = Pipeline("question-answering", reader)
    question, context = "who?", "ann wrote it"
    columns = {"question": [question], "context": [context]}
    (expected,) = reader.answers(columns)
    row = {"question": question, "context": context}
    for answer in (found(**row), found(question, context), found(row)):
        assert answer["answer"] == expected["answer"]
    for answers in (found(**columns), found(columns), found([question], [context]), found([row])):
        assert [one["answer"] for one in answers] == [expected["answer"]]
    for calls in ((), {}), (("who?",), {"context": "x"}):
        with pytest.raises(TypeError, match="texts, or with columns by name, and nothing else. "):
            found(*calls[0], **calls[1])
    for other in (None, 3, [context]):
        with pytest.raises(TypeError, match="`context` must be one text, as .*one text for each"):
            found(question=question, context=other)


def test_arguments_of_others_are_named(classifier: Classifier):
    with pytest.raises(TypeError, match="nothing else. Received: texts, and top_k, truncation"):
        Pipeline("classification", classifier)("a text", top_k=None, truncation=True)


def test_a_loaded_model(classifier: Classifier):
    found = pipeline("text-classification", classifier)
    assert found.model is classifier
    expected = classifier.answers(["a text"])
    assert found({"text": "a text"}) == found("a text") == found(b"a text") == expected[0]
    with pytest.raises(ValueError, match="no further arguments for a model that .*: dtype"):
        pipeline("text-classification", classifier, dtype="bfloat16")
    with pytest.raises(ValueError, match=r"one EntityRecognizer .* Classifier \(of the task class"):
        pipeline("ner", classifier)


@pytest.mark.parametrize(
    "task, name, model",
    [
        ("question-answering", "question-answering", "minilm-squad"),
        ("ner", "ner", "minilm-ner"),
        ("token-classification", "ner", "minilm-ner"),
        ("sentiment-analysis", "classification", "minilm-sentiment"),
        ("sentiment", "classification", "minilm-sentiment"),
    ],
)
def test_models_that_come_with_kbert(task, name, model, monkeypatch):
    asked: list[Any] = []
    kinds = {
        "minilm-squad": "QuestionAnswerer",
        "minilm-ner": "EntityRecognizer",
        "minilm-sentiment": "Classifier",
    }

    def load(source: str) -> Any:
        asked.append(source)
        return getattr(kbert, kinds[source]).__new__(getattr(kbert, kinds[source]))

    monkeypatch.setattr(module, "load", load)
    assert pipeline(task).task == name
    assert asked == [model]


def test_a_published_encoder_embeds(minilm_directory):
    found = pipeline("feature-extraction")
    assert isinstance(found.model, kbert.TextEmbedder)
    assert len(found("a text")["embedding"]) == 384  # the width of all-MiniLM-L6-v2


def test_unknown_tasks_and_tasks_without_a_model():
    with pytest.raises(ValueError, match="`task` must be .*task='nerr'. Did you mean `ner`?"):
        pipeline("nerr")
    with pytest.raises(ValueError, match="for 'fill-mask'.*a MaskedLanguageModel.*model=None"):
        pipeline("fill-mask")
    with pytest.raises(ValueError, match="for 'text-classification'.*a Classifier.*model=None"):
        pipeline("text-classification")  # of which topics?
    with pytest.raises(FileNotFoundError, match="Did you mean `minilm-ner`"):
        pipeline("ner", "minilm-nerr")


def test_models_of_other_tasks(saved, exported_path):
    message = "`model` must be one EntityRecognizer for this task. Received: .*, Classifier"
    for model in (saved, exported_path):
        with pytest.raises(ValueError, match=message):
            pipeline("ner", model)
    with pytest.raises(ValueError, match="must be one TextEmbedder"):
        pipeline("embedding", saved)


def test_an_export_of_two_texts_by_place(tmp_path):
    reader = small_question_answerer()
    found = pipeline("question-answering", export(reader, tmp_path, max_batch_size=0))
    (expected,) = reader.answers({"question": ["who?"], "context": ["ann wrote it"]})
    assert found("who?", "ann wrote it")["answer"] == expected["answer"]
    assert [one["answer"] for one in found(["who?"], ["ann wrote it"])] == [expected["answer"]]


def test_an_export_of_images_opens_files(tmp_path):
    (file,) = files_of(shapes()[0][:1])
    (photo := tmp_path / "photo.png").write_bytes(file)
    found = Pipeline("captioning", load_export(export(Teller(), tmp_path / "exports")))
    (expected,) = found.model.answers([file])
    assert expected["problem"] == ""
    assert found(photo) == found(str(photo)) == expected and found([photo]) == [expected]

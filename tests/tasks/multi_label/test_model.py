"""MultiLabelClassifier: what it answers, its thresholds, and its life in files."""

import json
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file

import kbert
from kbert.models.albert import Albert
from kbert.optimization.adamw import AdamW
from kbert.tasks.classification.model import Classifier
from kbert.tasks.multi_label.model import MultiLabelClassifier
from tests import numpy_reference as reference
from tests.checkpoints.synthetic_bert import hf_tensors, write_hf
from tests.small_pipelines import (
    TEXTS,
    TOKENIZER,
    VOCABULARY,
    computed,
    small_classifier,
    small_encoder,
    small_multi_label_classifier,
)

LABELS = ["joy", "anger", "love"]
SOME = ["a good film", "bad", "the very very bad film!", ""]
SETS = [["joy"], ["anger", "love"], [], ["love"]]


@pytest.fixture(scope="module")
def model():
    return small_multi_label_classifier()


# --- answers ---------------------------------------------------------------------------------


def test_the_whole_way_by_the_reference(model):
    tokens = ["[CLS]", "good", "##ness", "!", "[SEP]"]
    ids = np.array([[VOCABULARY.id_of(token) for token in tokens]])
    pooled = reference.bert(model.encoder.to_checkpoint().arrays, ids, 1, 2).pooled_output
    head = model.sequence_head.classifier
    logits = reference.dense(pooled, np.asarray(head.kernel), np.asarray(head.bias))
    expected = 1 / (1 + np.exp(-logits))
    np.testing.assert_allclose(model.predict(["Goodness!"]), expected, atol=1e-5)


def test_graph_functions_and_answers_agree_with_predict(model):
    texts = tf.constant([t.encode() if isinstance(t, str) else t for t in TEXTS])
    (classify, specs), (classify_tokens, token_specs) = model.signatures().values()
    found = tf.function(classify, input_signature=specs, autograph=False)(texts)
    predicted = model.predict(TEXTS)
    assert predicted.shape == (len(TEXTS), 3) and predicted.dtype == "float32"
    np.testing.assert_allclose(found["probabilities"], predicted, atol=1e-5)
    np.testing.assert_array_equal(found["chosen"], predicted >= 0.5)
    assert [[x.decode() for x in row] for row in found["labels"].numpy()] == [LABELS] * len(TEXTS)
    np.testing.assert_array_equal(found["truncated"], model.pack(TEXTS).truncated)
    packed = model.preprocess(texts)
    function = tf.function(classify_tokens, input_signature=token_specs, autograph=False)
    of_tokens = function(packed.token_ids, packed.segment_ids, packed.lengths)
    assert sorted(of_tokens) == ["chosen", "labels", "probabilities"]
    np.testing.assert_allclose(of_tokens["probabilities"], predicted, atol=1e-5)
    rows = model.answers(TEXTS)
    for row, numbers, cut in zip(rows, predicted, model.pack(TEXTS).truncated):
        order = [i for i in np.argsort(-numbers, kind="stable") if numbers[i] >= 0.5]
        assert row["labels"] == [LABELS[i] for i in order]
        assert row["probabilities"] == pytest.approx(dict(zip(LABELS, numbers)))
        assert row["truncated"] == cut
    counts = {len(row["labels"]) for row in rows}
    assert len(counts) > 1  # of different texts
    assert model.predict([]).shape == (0, 3) and model.answers([]) == []


def test_thresholds(model):
    predicted = model.predict(SOME)
    made = small_multi_label_classifier(threshold={"love": 0.9, "joy": 0.001})
    assert made.threshold == [0.001, 0.5, 0.9]
    assert made.thresholds == {"joy": 0.001, "anger": 0.5, "love": 0.9}
    chosen = predicted >= np.array([0.001, 0.5, 0.9], "float32")
    rows = made.answers(SOME)
    assert [set(row["labels"]) for row in rows] == [
        {name for name, there in zip(LABELS, row) if there} for row in chosen
    ]
    np.testing.assert_array_equal(made.classify(tf.constant(SOME))["chosen"], chosen)
    made.threshold = 0.999999
    assert made.threshold == 0.999999 and made.answers(SOME)[0]["labels"] == []
    made.threshold = np.array([0.1, 0.2, 0.3])
    assert made.threshold == [0.1, 0.2, 0.3]


def test_thresholds_tuned_on_examples():
    made = small_multi_label_classifier()
    # Right for joy are the two largest probabilities, for love all, for anger none.
    order = np.argsort(-made.predict(SOME)[:, 0])
    sets = [["joy", "love"] if i in order[:2] else ["love"] for i in range(4)]
    found = made.tune_thresholds(SOME, sets)
    assert found == made.thresholds and found["anger"] == 0.5
    rows = made.answers(SOME)
    assert [set(row["labels"]) - {"anger"} for row in rows] == [set(one) for one in sets]
    with pytest.raises(ValueError, match="`y` must have one entry a text. Received: 1 for 4 texts"):
        made.tune_thresholds(SOME, sets[:1])


@pytest.mark.parametrize(
    "threshold, message",
    [
        (0, r"`threshold` must be a number in \(0, 1\), or one for each of 3 labels. .*=0$"),
        (1.0, r"Received: threshold=1.0"),
        ([0.5, 0.5], r"one for each of 3 labels. Received: threshold=\[0.5, 0.5\]"),
        ({"joy": float("nan")}, r"must be a number in \(0, 1\)"),
        ({"joy": 0.5, "hate": 0.5}, r"must have labels of \['joy', .* as keys. .*: \['hate'\]"),
        ("tuned", r"must be a number in \(0, 1\).*'tuned'"),
    ],
)
def test_wrong_thresholds(model, threshold, message):
    with pytest.raises(ValueError, match=message):
        model.threshold = threshold
    assert model.threshold == 0.5


def test_wrong_labels():
    for labels, message in (
        ([], "`labels` must be different names, one or more. Received: labels="),
        (["a", "a"], "`labels` must be different names, one or more. Received: labels="),
        ("ab", "`labels` must be the names of the classes"),
    ):
        with pytest.raises(ValueError, match=message):
            MultiLabelClassifier(small_encoder(), TOKENIZER, labels, 24)
    assert MultiLabelClassifier(small_encoder(), TOKENIZER, ["spam"], 24).labels == ["spam"]


# --- learning and files ----------------------------------------------------------------------


def test_learning_and_a_keras_file(tmp_path):
    model = small_multi_label_classifier(threshold=[0.4, 0.5, 0.6], pair=True)
    model.compile(AdamW(5e-3))
    history = model.fit((SOME, SOME), SETS, epochs=20, verbose=0).history
    assert history["loss"][-1] < 0.2 * history["loss"][0]
    assert history["micro_f1"][-1] == history["exact_match"][-1] == 1.0
    encoded = model.encode_targets(SETS)
    np.testing.assert_array_equal(computed(model, (SOME, SOME)) >= 0.5, encoded)
    model.save(tmp_path / "model.keras")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = keras.models.load_model(tmp_path / "model.keras")
    assert again.get_config() == model.get_config() and again.threshold == [0.4, 0.5, 0.6]
    pairs = (TEXTS, list(reversed(TEXTS)))
    np.testing.assert_allclose(computed(again, pairs), computed(model, pairs), atol=1e-5)


@pytest.mark.parametrize("format", ["kbert", "huggingface"])
@pytest.mark.parametrize("threshold", [0.5, [0.25, 0.5, 0.75]])
def test_folders(tmp_path, format, threshold):
    model = small_multi_label_classifier(threshold=threshold)
    folder = model.save_pretrained(tmp_path / "saved", format=format)
    again = kbert.load(folder, max_sequence_length=24)
    assert type(again) is MultiLabelClassifier and again.labels == LABELS
    assert again.threshold == threshold
    np.testing.assert_allclose(computed(again, TEXTS), computed(model, TEXTS), atol=1e-5)
    if format == "huggingface":
        config = json.loads((folder / "config.json").read_text())
        assert config["problem_type"] == "multi_label_classification"
        assert config["architectures"] == ["BertForSequenceClassification"]
        assert config["id2label"] == {"0": "joy", "1": "anger", "2": "love"}
        assert ("threshold" in config) == (threshold != 0.5)


def write_labeller(folder, **config):
    heads = {"classifier.weight": (3, 4), "classifier.bias": (3,)}
    names = {"id2label": {"0": "a", "1": "b", "2": "c"}, "label2id": {"a": 0, "b": 1, "c": 2}}
    return write_hf(
        folder,
        hf_tensors(prefix="bert.", heads=heads),
        **{"architectures": ["BertForSequenceClassification"], **names, **config},
    )


def test_a_folder_of_hugging_face_is_written_as_it_was_read(tmp_path):
    source = write_labeller(tmp_path / "source", problem_type="multi_label_classification")
    model = kbert.load(source)
    assert type(model) is MultiLabelClassifier and model.labels == ["a", "b", "c"]
    folder = model.save_pretrained(tmp_path / "written", format="huggingface")
    one, other = (load_file(path / "model.safetensors") for path in (source, folder))
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert array.dtype == other[name].dtype and array.tobytes() == other[name].tobytes(), name
    read, written = (json.loads((path / "config.json").read_text()) for path in (source, folder))
    for key in ("problem_type", "id2label", "label2id", "architectures"):
        assert read[key] == written[key]
    again = kbert.load(folder).save_pretrained(tmp_path / "again", format="huggingface")
    for file in ("model.safetensors", "config.json"):
        assert (again / file).read_bytes() == (folder / file).read_bytes()


def test_heads_of_another_kind(tmp_path, caplog):
    single = write_labeller(tmp_path / "single", problem_type="single_label_classification")
    message = "must be multi_label_classification. Received: single_label_classification"
    with pytest.raises(ValueError, match=message):
        MultiLabelClassifier.from_pretrained(single)
    several = write_labeller(tmp_path / "several", problem_type="multi_label_classification")
    made = Classifier.from_pretrained(several, labels=["x", "y"], from_other_task=True)
    assert "A head for multi_label_classification: its encoder is taken" in caplog.text
    assert made.labels == ["x", "y"]
    # A folder that names no type may be of either.
    unnamed = write_labeller(tmp_path / "unnamed")
    assert MultiLabelClassifier.from_pretrained(unnamed).labels == ["a", "b", "c"]
    assert type(kbert.load(unnamed)) is Classifier
    folder = small_classifier().save_pretrained(tmp_path / "classifier")
    with pytest.raises(ValueError, match="must hold a MultiLabelClassifier or an encoder."):
        MultiLabelClassifier.from_pretrained(folder)


@pytest.mark.parametrize("format", ["kbert", "huggingface"])
def test_another_encoder(tmp_path, format):
    encoder = Albert(len(VOCABULARY), 16, 3, 2, 32, 8, 2, 32, initializer_range=0.2)
    model = MultiLabelClassifier(encoder, TOKENIZER, LABELS, 24)
    again = kbert.load(model.save_pretrained(tmp_path / "model", format=format))
    assert type(again) is MultiLabelClassifier and type(again.encoder) is Albert
    np.testing.assert_allclose(computed(again, TEXTS[:3]), computed(model, TEXTS[:3]), atol=1e-5)
    if format == "huggingface":
        config = json.loads((tmp_path / "model" / "config.json").read_text())
        assert config["architectures"] == ["AlbertForSequenceClassification"]
        assert config["problem_type"] == "multi_label_classification"

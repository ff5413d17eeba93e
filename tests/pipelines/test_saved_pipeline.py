"""save_pretrained and from_pretrained of whole text models, in both formats."""

import json
import logging

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file

from kbert.checkpoints.encoder_folder import write_native
from kbert.checkpoints.read_checkpoint import read_checkpoint
from kbert.pipelines.tokenizers import tokenizer_of
from kbert.tasks.classification.model import Classifier
from kbert.tasks.load import load
from kbert.tasks.multi_label.model import MultiLabelClassifier
from kbert.tasks.multiple_choice.model import MultipleChoice
from kbert.tasks.ner.model import EntityRecognizer
from kbert.tasks.question_answering.model import QuestionAnswerer
from kbert.tasks.regression.model import Regressor
from kbert.tasks.span_tagging.model import SpanTagger
from kbert.text.wordpiece.wordpiece import WordPiece
from tests.checkpoints.synthetic_bert import TOKENS, hf_tensors, write_hf
from tests.small_pipelines import (
    TEXTS,
    TOKENIZER,
    VOCABULARY,
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

HEAD = {"classifier.weight": (3, 4), "classifier.bias": (3,)}


@pytest.mark.parametrize("head", ["pooler", "two_layer"])
def test_kbert_format(tmp_path, head):
    model = small_classifier(head=head, pair=True, max_sequence_length=20, dropout=0.25)
    folder = model.save_pretrained(tmp_path / "saved")
    assert folder == tmp_path / "saved"
    with pytest.raises(FileExistsError, match="must not exist yet, unless overwrite=True"):
        model.save_pretrained(folder)
    model.save_pretrained(folder, overwrite=True)
    again = Classifier.from_pretrained(folder)
    assert again.get_config() == model.get_config()
    pairs = (TEXTS, list(reversed(TEXTS)))
    np.testing.assert_allclose(computed(again, pairs), computed(model, pairs), atol=1e-5)
    about = json.loads((folder / "kbert.json").read_text())["pipeline"]
    assert about == {
        "class": "Classifier",
        "labels": ["no", "yes", "perhaps"],
        "head": head,
        "dropout": 0.25,
        "max_sequence_length": 20,
        "pair": True,
        "special_tokens_in_text": False,
        "strip_accents": None,
        "handle_cjk": True,
    }
    assert (folder / "vocabulary.txt").read_text("utf-8").split() == list(VOCABULARY.tokens)


def test_hugging_face_format(tmp_path):
    model = small_classifier()
    folder = model.save_pretrained(tmp_path / "saved", format="huggingface")
    again = Classifier.from_pretrained(folder, max_sequence_length=24)
    assert again.labels == model.labels
    np.testing.assert_allclose(computed(again, TEXTS), computed(model, TEXTS), atol=1e-5)
    # What transformers' BertForSequenceClassification reads.
    config = json.loads((folder / "config.json").read_text())
    assert config["architectures"] == ["BertForSequenceClassification"]
    assert config["id2label"] == {"0": "no", "1": "yes", "2": "perhaps"}
    assert config["label2id"] == {"no": 0, "yes": 1, "perhaps": 2}
    assert config["problem_type"] == "single_label_classification"
    assert config["classifier_dropout"] == 0.0
    tensors = load_file(folder / "model.safetensors")
    assert tensors["classifier.weight"].shape == (3, 16)
    assert "bert.pooler.dense.weight" in tensors


@pytest.mark.parametrize("format", ["kbert", "huggingface"])
@pytest.mark.parametrize("task", ["regressor", "multiple_choice"])
def test_other_tasks(tmp_path, format, task):
    made = {"regressor": small_regressor, "multiple_choice": small_multiple_choice}[task]
    model = made(max_sequence_length=20)
    folder = model.save_pretrained(tmp_path / "saved", format=format)
    again = type(model).from_pretrained(folder, max_sequence_length=20, dropout=0.0)
    x = TEXTS if task == "regressor" else (TEXTS, [["a", "b"]] * len(TEXTS))
    np.testing.assert_allclose(computed(again, x), computed(model, x), atol=1e-5)
    if format == "huggingface":
        config = json.loads((folder / "config.json").read_text())
        name = {"regressor": "SequenceClassification", "multiple_choice": "MultipleChoice"}[task]
        assert config["architectures"] == [f"BertFor{name}"]


@pytest.mark.parametrize(
    "made, settings",
    [
        (small_classifier, {"pair": True, "max_sequence_length": np.int64(16), "dropout": 0.4}),
        (small_regressor, {"pair": True, "max_sequence_length": 24}),
        (small_multi_label_classifier, {"pair": True, "threshold": 0.25}),
        (small_multiple_choice, {"max_sequence_length": 20}),
        (
            small_question_answerer,
            {"stride": 3, "max_answer_length": 7, "nbest": 2, "null_threshold": -1.5},
        ),
        (small_span_tagger, {"stride": 2, "soft": False, "outside_bias": -0.5}),
        (small_entity_recognizer, {"stride": 2, "strict_tags": True}),
        (small_entity_recognizer, {"strict_tags": False}),
        (small_masked_language_model, {"stride": 4, "nbest": 3, "objective": "mlm"}),
    ],
)
def test_hugging_face_format_keeps_the_settings_of_a_task(tmp_path, made, settings):
    model = made(**settings)
    folder = model.save_pretrained(tmp_path / "saved", format="huggingface")
    again = load(folder)
    assert type(again) is type(model)
    names = type(model).arguments
    assert {name: getattr(again, name) for name in names} == {n: getattr(model, n) for n in names}
    assert {name: getattr(again, name) for name in settings} == settings


def test_usual_settings_leave_a_configuration_of_hugging_face_as_it_is(tmp_path):
    model = small_question_answerer(max_sequence_length=32, stride=10, max_question_length=5)
    folder = model.save_pretrained(tmp_path / "saved", format="huggingface")
    config = json.loads((folder / "config.json").read_text())
    assert "kbert" not in config
    # Of another class they say nothing.
    config["kbert"] = {"class": "SpanTagger", "stride": 1, "max_sequence_length": 4}
    (folder / "config.json").write_text(json.dumps(config))
    again = load(folder)
    assert (again.stride, again.max_sequence_length) == (10, 32)


def test_a_cased_tokenizer_with_rules_of_its_own(tmp_path):
    tokenizer = WordPiece(VOCABULARY, False, True, True, False)
    model = Classifier(small_encoder(), tokenizer, ["a", "b"], 24)
    again = Classifier.from_pretrained(model.save_pretrained(tmp_path / "saved")).tokenizer
    assert again.get_config() == tokenizer.get_config()
    assert (again.lowercase, again.special_tokens_in_text, again.handle_cjk) == (False, True, False)
    folder = model.save_pretrained(tmp_path / "hf", format="huggingface")
    again = Classifier.from_pretrained(folder, max_sequence_length=24).tokenizer
    assert (again.lowercase, again.strip_accents, again.handle_cjk) == (False, True, False)
    # Of an encoder, in both formats, what it was trained with is known too.
    for path in (tmp_path / "saved", folder):
        encoder = read_checkpoint(path)
        encoder.pipeline = {}
        copy = write_native(encoder, tmp_path / f"{path.name}-encoder")
        for checkpoint in (encoder, read_checkpoint(copy)):
            found = tokenizer_of(checkpoint)
            assert (found.lowercase, found.strip_accents, found.handle_cjk) == (False, True, False)
            assert not found.special_tokens_in_text  # a matter of the task


def test_a_new_head_on_an_encoder(tmp_path):
    folder = small_encoder().save_pretrained(tmp_path / "encoder")
    (folder / "vocabulary.txt").write_text("".join(f"{t}\n" for t in VOCABULARY.tokens))
    model = Classifier.from_pretrained(
        folder,
        ["bad", "good"],
        head="two_layer",
        max_sequence_length=16,
        dropout=0.3,
        encoder_dropout=0.2,
        attention_dropout=0.1,
        dtype="mixed_bfloat16",
        pair=True,
    )
    assert model.predict((["a"], ["b"])).shape == (1, 2)
    encoder = model.encoder
    assert (model.dropout, encoder.dropout, encoder.attention_dropout) == (0.3, 0.2, 0.1)
    assert model.encoder.dtype_policy.name == model.dtype_policy.name == "mixed_bfloat16"
    # The default length gives way to the encoder's positions.
    assert Regressor.from_pretrained(folder).max_sequence_length == 32
    message = "`labels` must be given for an encoder without a classification head. Received: None"
    with pytest.raises(ValueError, match=message):
        Classifier.from_pretrained(folder)


def test_hugging_face_labels_and_replacements(tmp_path):
    names = {"0": "low", "1": "mid", "2": "high"}
    source = write_hf(
        tmp_path / "source",
        hf_tensors(prefix="bert.", heads=HEAD),
        architectures=["BertForSequenceClassification"],
        id2label=names,
        label2id={name: int(i) for i, name in names.items()},
    )
    model = Classifier.from_pretrained(source)
    assert model.labels == ["low", "mid", "high"] and model.max_sequence_length == 8
    kernel = load_file(source / "model.safetensors")["classifier.weight"].T
    np.testing.assert_array_equal(model.sequence_head.classifier.kernel, kernel)
    for labels in (["x", "y", "z"], np.array(["x", "y", "z"])):
        assert Classifier.from_pretrained(source, labels).labels == ["x", "y", "z"]
    with pytest.raises(ValueError, match=r"two different names. Received: labels=\[\]"):
        Classifier.from_pretrained(source, [])
    message = (
        r"the head `classifier` must have a weight of shape \(2, 4\). Received: \(3, 4\)"
    )
    with pytest.raises(ValueError, match=message):
        Classifier.from_pretrained(source, ["x", "y"])
    with pytest.raises(ValueError, match=r"a weight of shape \(1, 4\). Received"):
        Regressor.from_pretrained(source)


def test_labels_without_names(tmp_path):
    source = write_hf(
        tmp_path / "source",
        hf_tensors(prefix="bert.", heads=HEAD),
        architectures=["BertForSequenceClassification"],
    )
    assert Classifier.from_pretrained(source).labels == ["LABEL_0", "LABEL_1", "LABEL_2"]


@pytest.mark.parametrize("architecture", ["BertForTokenClassification", "BertForMultipleChoice"])
def test_the_head_of_another_task_is_not_taken(tmp_path, architecture):
    heads = {"classifier.weight": (1, 4), "classifier.bias": (1,)}
    tokens = architecture == "BertForTokenClassification"
    source = write_hf(
        tmp_path / "source",
        hf_tensors(prefix="bert.", pooler=not tokens, heads=HEAD if tokens else heads),
        architectures=[architecture],
    )
    with pytest.raises(ValueError, match="`labels` must be given for an encoder without a class"):
        Classifier.from_pretrained(source)
    kernel = load_file(source / "model.safetensors")["classifier.weight"].T
    classifier = Classifier.from_pretrained(source, ["a", "b", "c"])
    for model in (classifier, Regressor.from_pretrained(source)):
        assert not np.array_equal(model.sequence_head.classifier.kernel, kernel)
    if not tokens:
        model = MultipleChoice.from_pretrained(source)
        np.testing.assert_array_equal(model.sequence_head.classifier.kernel, kernel)


def test_several_labels_at_once_are_refused(tmp_path):
    source = write_hf(
        tmp_path / "source",
        hf_tensors(prefix="bert.", heads=HEAD),
        architectures=["BertForSequenceClassification"],
        problem_type="multi_label_classification",
    )
    message = "`problem_type` .* must be single_label_.* Received: multi_label_classification"
    with pytest.raises(ValueError, match=message):
        Classifier.from_pretrained(source)
    # Its encoder may be taken, as that of any other task.
    made = Classifier.from_pretrained(source, labels=["a", "b"], from_other_task=True)
    assert made.labels == ["a", "b"]


def test_refusals_in_saving(tmp_path):
    with pytest.raises(ValueError, match='`format` must be "kbert" or "huggingface". .*=\'tf1\''):
        small_classifier().save_pretrained(tmp_path / "saved", format="tf1")
    with pytest.raises(ValueError, match="Received: format='hugingface'. Did you mean `huggingf"):
        small_classifier().save_pretrained(tmp_path / "saved", format="hugingface")
    message = (
        '`head` must be "pooler" for format "huggingface", which knows no other. '
        "Received: head='two_layer'"
    )
    with pytest.raises(ValueError, match=message):
        small_classifier(head="two_layer").save_pretrained(tmp_path / "s", format="huggingface")
    assert not list(tmp_path.iterdir())
    folder = small_classifier().save_pretrained(tmp_path / "saved")
    with pytest.raises(FileExistsError, match="saved"):
        small_classifier().save_pretrained(folder)


@pytest.mark.parametrize("saved, given", [("two_layer", "pooler"), ("pooler", "two_layer")])
def test_a_saved_head_is_the_head(tmp_path, saved, given):
    """Half of a head of two layers on the pooler would be read without a word otherwise."""
    folder = small_classifier(head=saved).save_pretrained(tmp_path / "saved")
    message = f"`head` must be '{saved}', as that of .*saved. Received: head='{given}'"
    with pytest.raises(ValueError, match=message):
        Classifier.from_pretrained(folder, head=given)
    assert Classifier.from_pretrained(folder, head=saved).head == saved
    # Another task takes the encoder alone, with a new head of any kind.
    assert Regressor.from_pretrained(folder, head=given, from_other_task=True).head == given


def test_the_folder_of_another_task(tmp_path):
    folder = small_regressor().save_pretrained(tmp_path / "saved")
    message = "`name_or_directory` must hold a Classifier or an encoder. Received: .*, a Regressor"
    with pytest.raises(ValueError, match=message):
        Classifier.from_pretrained(folder, ["a", "b"])
    with pytest.raises(ValueError, match="`from_other_task=True` takes its encoder"):
        SpanTagger.from_pretrained(folder)


def test_the_encoder_of_another_task(tmp_path, caplog):
    # Both heads are a matrix called `classifier`, of the same size: it must not be taken over.
    model = small_classifier(pair=True, max_sequence_length=20, dropout=0.25)
    folder = model.save_pretrained(tmp_path / "saved")
    with caplog.at_level(logging.WARNING):
        other = EntityRecognizer.from_pretrained(
            folder, labels=["O", "B-x", "I-x"], from_other_task=True
        )
    message = f"{folder} is a Classifier: its encoder is taken, the head is new."
    assert [record.getMessage() for record in caplog.records] == [message]
    for one, same in zip(model.encoder.weights, other.encoder.weights):
        np.testing.assert_array_equal(one, same)
    assert other.tokenizer.vocabulary.tokens == model.tokenizer.vocabulary.tokens
    assert (other.labels, other.dropout) == (["O", "B-x", "I-x"], 0.1)
    (own, _), (new, _) = (m.head_layers()["classifier"].weights for m in (model, other))
    assert own.shape == new.shape and not np.array_equal(own, new)
    with pytest.raises(ValueError, match="`labels` must be given for an encoder without a class"):
        EntityRecognizer.from_pretrained(folder, from_other_task=True)


def test_a_model_of_the_same_task_keeps_its_head(tmp_path):
    model = small_classifier()
    folder = model.save_pretrained(tmp_path / "saved")
    for labels in (None, model.labels):
        same = Classifier.from_pretrained(folder, labels, from_other_task=True)
        np.testing.assert_allclose(computed(same, TEXTS), computed(model, TEXTS), atol=1e-5)


@pytest.mark.parametrize("labels", [["a", "b"], ["yes", "no", "perhaps"]])
def test_a_model_of_other_labels_gives_its_encoder(tmp_path, caplog, labels):
    model = small_classifier(("no", "yes", "perhaps"))
    folder = model.save_pretrained(tmp_path / "saved")
    with caplog.at_level(logging.WARNING):
        other = Classifier.from_pretrained(folder, labels, from_other_task=True)
    message = f"{folder} has other labels: its encoder is taken, the head is new."
    assert [record.getMessage() for record in caplog.records] == [message]
    assert other.labels == labels
    for one, same in zip(model.encoder.weights, other.encoder.weights):
        np.testing.assert_array_equal(one, same)
    (own, _), (new, _) = (m.head_layers()["classifier"].weights for m in (model, other))
    assert own.shape != new.shape or not np.array_equal(own, new)
    message = "the head `classifier` must have a weight of shape .*`from_other_task=True` takes"
    with pytest.raises(ValueError, match=message):
        Classifier.from_pretrained(folder, ["a", "b"])  # which asks for that model itself


def test_a_number_of_labels_is_none_of_the_arguments():
    with pytest.raises(ValueError, match="`labels` must be given, .* Received: num_labels=2"):
        Classifier.from_pretrained("a folder that is not read", num_labels=2)
    with pytest.raises(ValueError, match="`labels` must be left out: Regressor has none. .*'a'"):
        Regressor.from_pretrained("a folder that is not read", labels=["a", "b"])


def test_a_misspelt_argument_is_found_before_anything_is_read():
    with pytest.raises(ValueError, match="Classifier has no such .* mean `max_sequence_length`?"):
        Classifier.from_pretrained("a folder that is not read", ["a", "b"], max_seq_length=64)
    with pytest.raises(ValueError, match="`encoder_dropouts` .* Did you mean `encoder_dropout`?"):
        Classifier.from_pretrained("a folder that is not read", encoder_dropouts=0.1)


def test_a_head_of_numbers_gets_names(tmp_path):
    tensors = hf_tensors(prefix="bert.", heads=HEAD)
    source = write_hf(
        tmp_path / "source", tensors, architectures=["BertForSequenceClassification"]
    )
    made = Classifier.from_pretrained(source, ["no", "yes", "perhaps"], from_other_task=True)
    kernel, _ = made.head_layers()["classifier"].weights
    np.testing.assert_array_equal(kernel, tensors["classifier.weight"].T)


def test_tokenizers_of_checkpoints(tmp_path):
    source = write_hf(tmp_path / "source", hf_tensors())
    checkpoint = read_checkpoint(source)
    tokenizer = tokenizer_of(checkpoint, special_tokens_in_text=True)
    assert tokenizer.vocabulary.tokens == tuple(TOKENS)
    assert tokenizer.lowercase and tokenizer.special_tokens_in_text
    (source / "vocab.txt").unlink()
    checkpoint = read_checkpoint(source)
    message = "must have a vocabulary beside its weights: vocab.txt, or .*format. Received: none"
    with pytest.raises(ValueError, match=message):
        tokenizer_of(checkpoint)
    checkpoint.vocabulary_tokens = VOCABULARY.tokens
    assert tokenizer_of(checkpoint).vocabulary == TOKENIZER.vocabulary


def test_windows_of_a_short_encoder(tmp_path):
    folder = small_encoder().save_pretrained(tmp_path / "encoder")
    (folder / "vocabulary.txt").write_text("".join(f"{t}\n" for t in VOCABULARY.tokens))
    # 32 positions: a third is shared, a sixth is for the question, as 128 and 64 are of 384.
    reader = QuestionAnswerer.from_pretrained(folder)
    sizes = (reader.max_sequence_length, reader.stride, reader.max_question_length)
    assert sizes == (32, 10, 5)
    recognizer = EntityRecognizer.from_pretrained(folder, ["O", "B-A", "I-A"])
    assert (recognizer.max_sequence_length, recognizer.stride) == (32, 10)


@pytest.mark.parametrize("cls, warns", [(QuestionAnswerer, False), (Regressor, True)])
def test_only_what_needs_a_pooler_misses_it(cls, warns, tmp_path, caplog):
    tensors = {k: v for k, v in hf_tensors().items() if "pooler" not in k}
    source = write_hf(tmp_path / "source", tensors)
    with caplog.at_level(logging.WARNING):
        cls.from_pretrained(source)
    assert ("no pooler" in caplog.text) is warns


@pytest.mark.parametrize(
    "made",
    [
        small_classifier,
        small_regressor,
        small_question_answerer,
        pytest.param(small_span_tagger, marks=pytest.mark.slow),
    ],
)
def test_answers_in_float64_are_those_in_float32(made):
    """What an export gives is float32 whatever the model computes in."""
    one, other = made(), made(dtype="float64")
    for mine, theirs in zip(other.weights, one.weights, strict=True):
        mine.assign(theirs)
    x = (["good film", "a"], ["the good film", "a film"])
    x = x if hasattr(one, "max_question_length") else x[1]
    found, expected = other.answers(x), one.answers(x)
    for mine, theirs in zip(found, expected, strict=True):
        for a, b in zip(*(m if isinstance(m, list) else [m] for m in (mine, theirs)), strict=True):
            assert a.keys() == b.keys()
            assert a.get("score") == pytest.approx(b.get("score"), abs=1e-4)
            assert a.get("answer") == b.get("answer")


def test_a_head_that_would_not_be_read_again_is_not_written(tmp_path, monkeypatch):
    model = small_classifier()
    layer = keras.layers.PReLU(name="thresholds")
    layer.build((None, 2))
    with monkeypatch.context() as patch:
        patch.setattr(type(model), "head_layers", lambda self: {"classifier": layer})
        with pytest.raises(ValueError, match="no other weights than kernel.*thresholds/alpha in"):
            model.save_pretrained(tmp_path / "saved")
    monkeypatch.setattr(type(model), "head_names", ("other.",))
    with pytest.raises(ValueError, match="`Classifier.head_names` must have the beginnings"):
        model.save_pretrained(tmp_path / "saved")
    assert not list(tmp_path.iterdir())


def test_a_head_that_hugging_face_does_not_have(tmp_path, monkeypatch):
    model = small_classifier()
    monkeypatch.setattr(type(model), "huggingface_architecture", None)
    assert type(model).huggingface_architectures() == ()
    with pytest.raises(ValueError, match='`format` must be "kbert" for a Classifier, of which'):
        model.save_pretrained(tmp_path / "saved", format="huggingface")


def test_a_new_head_decides_by_numbers_of_its_own(tmp_path):
    labels = ["joy", "anger", "love"]
    model = small_multi_label_classifier(labels, threshold=[0.9, 0.05, 0.4])
    folder = model.save_pretrained(tmp_path / "saved")
    same = MultiLabelClassifier.from_pretrained(folder)
    assert same.threshold == model.threshold
    for others in (["x", "y", "z"], ["x", "y"]):
        new = MultiLabelClassifier.from_pretrained(folder, labels=others, from_other_task=True)
        assert new.threshold == small_multi_label_classifier(others).threshold
    given = {"labels": ["x", "y"], "threshold": [0.2, 0.3], "from_other_task": True}
    new = MultiLabelClassifier.from_pretrained(folder, **given)
    assert list(new.threshold) == [0.2, 0.3]

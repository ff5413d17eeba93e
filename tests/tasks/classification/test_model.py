"""Classifier: what it answers, its labels, and its life as a Keras model."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.models.bert import Bert
from kbert.optimization.adamw import AdamW
from kbert.tasks.classification.model import Classifier
from tests import numpy_reference as reference
from tests.small_pipelines import (
    TEXTS,
    TOKENIZER,
    VOCABULARY,
    computed,
    small_classifier,
    small_encoder,
)

LABELS = ["no", "yes", "perhaps"]
SOME = ["a good film", "bad", "the very very bad film!", ""]


@pytest.fixture(scope="module")
def model():
    return small_classifier()


# --- answers ---------------------------------------------------------------------------------


def test_the_whole_way_by_the_reference(model):
    """Text to probabilities by the NumPy reference, on token ids made by hand."""
    tokens = ["[CLS]", "good", "##ness", "!", "[SEP]"]
    ids = np.array([[VOCABULARY.id_of(token) for token in tokens]])
    arrays = model.encoder.to_checkpoint().arrays
    pooled = reference.bert(arrays, ids, 1, 2).pooled_output
    head = model.sequence_head.classifier
    logits = reference.dense(pooled, np.asarray(head.kernel), np.asarray(head.bias))
    expected = reference.softmax(logits)
    np.testing.assert_allclose(model.predict(["Goodness!"]), expected, atol=1e-5)


@pytest.mark.parametrize("in_graph", [False, True])
def test_graph_functions_agree_with_predict(model, in_graph):
    texts = tf.constant([t.encode() if isinstance(t, str) else t for t in TEXTS])
    classify, classify_tokens = model.classify, model.classify_tokens
    if in_graph:
        (classify, specs), (classify_tokens, token_specs) = model.signatures().values()
        classify = tf.function(classify, input_signature=specs, autograph=False)
        classify_tokens = tf.function(classify_tokens, input_signature=token_specs)
    answers = classify(texts)
    predicted = model.predict(TEXTS)
    np.testing.assert_allclose(answers["scores"], predicted, atol=1e-5)
    best = predicted.argmax(-1)
    assert [x.decode() for x in answers["label"].numpy()] == [LABELS[i] for i in best]
    np.testing.assert_allclose(answers["score"], predicted.max(-1), atol=1e-5)
    names = [[x.decode() for x in row] for row in answers["labels"].numpy()]
    assert names == [LABELS] * len(TEXTS)
    np.testing.assert_array_equal(answers["truncated"], model.pack(TEXTS).truncated)
    packed = model.preprocess(texts)
    # What a server repeats or appends behind a row's length is not seen.
    ids = tf.where(packed.padding_mask, packed.token_ids, 7)
    from_tokens = classify_tokens(ids, packed.segment_ids, packed.lengths)
    assert sorted(from_tokens) == ["label", "labels", "score", "scores"]
    np.testing.assert_allclose(from_tokens["scores"], answers["scores"], atol=1e-5)
    np.testing.assert_array_equal(from_tokens["label"], answers["label"])


def test_graph_functions_of_no_rows(model):
    answers = model.classify(tf.constant([], tf.string, shape=(0,)))
    shapes = {name: tuple(value.shape) for name, value in answers.items()}
    expected = {"label": (0,), "score": (0,), "scores": (0, 3), "labels": (0, 3), "truncated": (0,)}
    assert shapes == expected


def test_pairs():
    model = small_classifier(pair=True)
    (function, specs), _ = model.signatures().values()
    assert [spec.name for spec in specs] == ["text_a", "text_b"]
    a, b = ["a good film"] * 2, ["bad", "very good"]
    found = function(tf.constant(a), tf.constant(b))
    np.testing.assert_allclose(found["scores"], model.predict((a, b)), atol=1e-5)
    assert [row["truncated"] for row in model.answers((["a " * 30, "a"], ["b", "b"]))] == [1, 0]


def test_answers_for_people(model):
    texts = ["a good film", "film " * 40]
    first, second = model.answers(texts)
    predicted = model.predict(texts)
    assert first["label"] == LABELS[predicted[0].argmax()]
    assert first["score"] == pytest.approx(predicted[0].max())
    assert first["scores"] == pytest.approx(dict(zip(LABELS, predicted[0])))
    assert (first["truncated"], second["truncated"]) == (False, True)
    assert model.answers([]) == []


def test_a_text_that_just_fits_is_not_cut(model):
    rows = model.answers(["film " * 22, "film " * 23])  # 24 tokens with [CLS] and [SEP]
    assert [row["truncated"] for row in rows] == [False, True]


def test_low_precision_answers_in_float32():
    model = small_classifier(dtype="mixed_bfloat16")
    assert model.encoder.dtype_policy.name == "mixed_bfloat16"
    found = model.predict(SOME)
    assert found.dtype == "float32"
    np.testing.assert_allclose(found.sum(-1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(found, small_classifier().predict(SOME), atol=0.1)


# --- construction ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, message",
    [
        (
            {"labels": ["one"]},
            r"`labels` must be at least two different names. Received: labels=\['one'\]",
        ),
        ({"labels": ["a", "b", "a"]}, "`labels` must be at least two different names."),
        ({"labels": ["", "b"]}, "`labels` must not be empty, nor differ only in the blanks"),
        ({"labels": ["a", "a "]}, r"in the blanks around them. Received: labels=\['a', 'a '\]$"),
        ({"pair": "yes"}, "`pair` must be True or False. Received: pair='yes'"),
        ({"labels": {"a", "b"}}, "`labels` must be in an order, .* Received: a set"),
        ({"labels": ["a", None]}, "`labels` must be texts or whole numbers. Received: None"),
        ({"labels": 2}, r"`labels` must be the names of the classes, .* Received: labels=2"),
        ({"labels": "ab"}, r"`labels` must be the names of the classes, .* Received: labels='ab'"),
        (
            {"max_sequence_length": 33},
            r"`max_sequence_length` must be a whole number in \[3, 32\], the encoder's positions. "
            "Received: max_sequence_length=33",
        ),
        ({"max_sequence_length": "16"}, r"a whole number in \[3, 32\], .* Received: .*='16'"),
        ({"max_sequence_length": 16.0}, "a whole number in .* Received: .*=16.0"),
        ({"max_seq_length": 16}, "`max_seq_length` must be left out: .* `max_sequence_length`?"),
        ({"max_sequence_length": 2}, r"`max_sequence_length` must be a whole number in \[3, 32\]"),
        ({"head": "x"}, r"`head` must be one of \['pooler', 'two_layer'\]. Received: head='x'"),
    ],
)
def test_wrong_arguments(arguments, message):
    arguments = {"labels": ["a", "b"], "max_sequence_length": 24, **arguments}
    with pytest.raises(ValueError, match=message):
        Classifier(small_encoder(), TOKENIZER, **arguments)


def test_a_tokenizer_with_more_tokens_than_the_encoder():
    encoder = Bert(20, 8, 1, 2, 8, 32)
    message = (
        "`tokenizer` must not have more tokens than the encoder has embeddings. Received: "
        f"{len(VOCABULARY)} tokens, 20 embeddings"
    )
    with pytest.raises(ValueError, match=message):
        Classifier(encoder, TOKENIZER, ["a", "b"], 16)


def test_attributes(model):
    assert model.labels == LABELS and model.tokenizer is TOKENIZER
    assert (model.max_sequence_length, model.pair, model.head) == (24, False, "pooler")
    assert isinstance(model.encoder, Bert) and model.name == "classifier"
    model.labels.append("more")
    assert model.labels == LABELS


# --- as a Keras model ------------------------------------------------------------------------


def test_a_keras_file_is_the_whole_model(tmp_path):
    model = small_classifier(head="two_layer", pair=True)
    model.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    model.fit((SOME, SOME), LABELS + ["no"], verbose=0)
    model.save(tmp_path / "model.keras")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = keras.models.load_model(tmp_path / "model.keras")
    assert again.get_config() == model.get_config()
    assert (again.labels, again.head, again.pair) == (LABELS, "two_layer", True)
    assert again.tokenizer.vocabulary == VOCABULARY
    pairs = (TEXTS, list(reversed(TEXTS)))
    np.testing.assert_allclose(computed(again, pairs), computed(model, pairs), atol=1e-4)
    # Compiled as before, and it trains on as the first one does.
    assert int(again.optimizer.iterations) == 1 and again.jit_compile is False
    for one in (model, again):
        one.fit((SOME, SOME), LABELS + ["no"], verbose=0)
    for one, other in zip(again.weights, model.weights, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_weights_alone(tmp_path, model):
    model.save_weights(tmp_path / "model.weights.h5")
    other = small_classifier(seed=8)
    assert np.abs(other.predict(SOME) - model.predict(SOME)).max() > 0.01
    other.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_allclose(other.predict(SOME), model.predict(SOME), atol=1e-4)


def test_ready_token_ids_go_through_keras_as_they_are(model):
    packed = model.preprocess(tf.constant(SOME))
    inputs = {
        "token_ids": packed.token_ids,
        "segment_ids": packed.segment_ids,
        "padding_mask": packed.padding_mask,
    }
    np.testing.assert_allclose(model.predict(inputs), model.predict(SOME), atol=1e-5)
    logits = model(inputs)
    np.testing.assert_allclose(tf.nn.softmax(logits), model.predict(SOME), atol=1e-5)
    assert logits.dtype == "float32"


@pytest.mark.slow
def test_random_batches_in_parts_learn_what_whole_ones_do():
    """With the gradients of four parts accumulated, weights become those of one batch of eight."""
    texts = [" ".join(["good", "bad", "film"] * (1 + i % 4))[: 40 - i] for i in range(16)]
    learned = []
    for parts in (1, 4):
        model = small_classifier(dropout=0.0)
        steps = None if parts == 1 else parts
        model.compile(optimizer=AdamW(1e-2, epsilon=1e-3, gradient_accumulation_steps=steps))
        targets = model.encode_targets(["no", "yes", "perhaps", "yes"] * 4)
        settings = {"batch_size": 8, "shuffle": True, "seed": 3, "parts": parts}
        batches = model.dataset(model.pack(texts), targets, **settings)
        model.fit(batches, epochs=2, verbose=0)
        learned.append([weight.numpy() for weight in model.trainable_weights])
    before = [weight.numpy() for weight in small_classifier(dropout=0.0).trainable_weights]
    moved = max(np.abs(one - start).max() for one, start in zip(learned[0], before))
    assert moved > 1e-2
    for whole, in_parts in zip(*learned):
        np.testing.assert_allclose(in_parts, whole, atol=2e-5)

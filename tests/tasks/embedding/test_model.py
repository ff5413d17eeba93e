"""TextEmbedder: vectors of texts, by the reference, saved, trained, searched."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

import kbert
from kbert.optimization.adamw import AdamW
from kbert.optimization.embedding_losses import TripletMargin
from kbert.tasks.load import load
from tests import numpy_reference as reference
from tests.small_pipelines import (
    TEXTS,
    TOKENIZER,
    VOCABULARY,
    random_texts,
    small_embedder,
    small_encoder,
)
from tests.training.eager_steps import eager_steps


@pytest.fixture(scope="module")
def model():
    return small_embedder()


def test_the_whole_way_by_the_reference(model):
    tokens = ["[CLS]", "a", "good", "film", "[SEP]"]
    ids = np.array([[VOCABULARY.id_of(token) for token in tokens]])
    states = reference.bert(model.encoder.to_checkpoint().arrays, ids, 1, 2).sequence_output
    mean = states[0].mean(axis=0)
    np.testing.assert_allclose(
        model.encode("A good film"), mean / np.linalg.norm(mean), atol=1e-5
    )


def test_predictions_and_graph_functions_agree(model):
    predicted = model.encode(TEXTS)
    assert predicted.shape == (len(TEXTS), 16) and predicted.dtype == "float32"
    texts = tf.constant([t.encode() if isinstance(t, str) else t for t in TEXTS])
    (embed, specs), (embed_tokens, token_specs) = model.signatures().values()
    found = tf.function(embed, input_signature=specs)(texts)
    np.testing.assert_allclose(found["embedding"], predicted, atol=1e-5)
    np.testing.assert_array_equal(found["truncated"], model.pack(TEXTS).truncated)
    packed = model.preprocess(texts)
    assert [spec.name for spec in token_specs] == ["token_ids", "segment_ids", "lengths"]
    found = embed_tokens(packed.token_ids, packed.segment_ids, packed.lengths)
    np.testing.assert_allclose(found["embedding"], predicted, atol=1e-5)
    rows = model.answers(TEXTS)
    np.testing.assert_allclose([row["embedding"] for row in rows], predicted, atol=1e-6)
    assert [row["truncated"] for row in rows] == model.pack(TEXTS).truncated.tolist()
    assert model.encode([]).shape == (0, 16) and model.answers([]) == []


def test_sizes_of_batches_do_not_matter(model):
    texts = random_texts(20)
    np.testing.assert_allclose(model.encode(texts, 3), model.encode(texts), atol=1e-6)


def test_similarity_and_search_of_texts_and_vectors(model):
    texts = random_texts(12, seed=4)
    vectors = model.encode(texts)
    np.testing.assert_allclose(model.similarity(texts, vectors), vectors @ vectors.T, atol=1e-5)
    lists = vectors.tolist()
    np.testing.assert_allclose(model.similarity(lists, texts), vectors @ vectors.T, atol=1e-5)
    places, scores = model.search(texts[:3], vectors, k=2)
    np.testing.assert_array_equal(places[:, 0], [0, 1, 2])
    np.testing.assert_allclose(scores[:, 0], 1.0, atol=1e-5)


@pytest.mark.parametrize("settings", [{}, {"dense": 5, "pooling": "max", "normalize": False}])
def test_folders(tmp_path, settings):
    model = small_embedder(**settings)
    again = load(model.save_pretrained(tmp_path / "saved"))
    assert type(again) is kbert.TextEmbedder and again.get_config() == model.get_config()
    np.testing.assert_allclose(again(TEXTS), model(TEXTS), atol=1e-6)


def test_an_encoder_becomes_an_embedder(tmp_path):
    tokens = "".join(f"{token}\n" for token in VOCABULARY.tokens)
    (tmp_path / "vocab.txt").write_text(tokens, encoding="utf-8")
    folder = small_encoder().save_pretrained(
        tmp_path / "encoder", vocabulary=tmp_path / "vocab.txt"
    )
    model = kbert.TextEmbedder.from_pretrained(folder, normalize=False)
    assert (model.pooling, model.normalize, model.max_sequence_length) == ("mean", False, 32)


def test_learning_saving_and_loading(tmp_path):
    model = small_embedder(dense=4)
    model.compile(AdamW(1e-2))
    pairs = (["good", "bad", "a film", "x y"], ["very good", "very bad", "the film", "xy"])
    with eager_steps():
        losses = model.fit(pairs, epochs=20, verbose=0).history["loss"]
    assert losses[-1] < 0.5 * losses[0]
    found = model.similarity(*pairs)
    assert (found.argmax(axis=1) == range(4)).all()
    model.save(tmp_path / "model.keras")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = keras.models.load_model(tmp_path / "model.keras")
    assert again.get_config() == model.get_config()
    np.testing.assert_allclose(again(TEXTS), model(TEXTS), atol=1e-6)
    assert int(again.optimizer.iterations) == 20


def test_learning_from_scores_and_from_triplets():
    model = small_embedder()
    model.compile(AdamW(1e-2))
    scored = (["good", "good", "a film"], ["very good", "bad", "xy"])
    with eager_steps():
        losses = model.fit(scored, [1.0, 0.0, 0.5], epochs=9, verbose=0).history["loss"]
    assert losses[-1] < 0.2 * losses[0]
    model.compile(AdamW(1e-2), TripletMargin())
    triplets = (["good", "bad"], ["xy", "a film"], ["a film", "xy"])
    with eager_steps():
        losses = model.fit(triplets, epochs=9, verbose=0).history["loss"]
    assert losses[-1] < 0.5 * losses[0]


def test_other_encoders_and_precisions(tmp_path):
    sizes = {"embedding_dim": 8, "num_layers": 2, "num_heads": 2, "intermediate_dim": 32}
    encoder = kbert.Albert(len(VOCABULARY), hidden_dim=16, max_sequence_length=32, **sizes)
    model = kbert.TextEmbedder(encoder, TOKENIZER, 24)
    found = model(TEXTS)
    for format in model.formats:
        again = load(model.save_pretrained(tmp_path / format, format=format))
        np.testing.assert_allclose(again(TEXTS), found, atol=1e-6)
    half = load(tmp_path / "kbert", dtype="mixed_bfloat16")(TEXTS)
    assert half.dtype == "float32"
    np.testing.assert_allclose(half, found, atol=0.05)


def test_errors(model):
    with pytest.raises(ValueError, match=r"`long` must be one of \['cut', 'windows'\]. Received"):
        model.encode(["a"], long="both")
    with pytest.raises(ValueError, match="`queries` must be a list of texts. Received: 'a text'"):
        model.search("a text", ["a"])
    with pytest.raises(ValueError, match="`b` must be a list of texts. Received: 'a text'"):
        model.similarity(["a"], "a text")
    with pytest.raises(ValueError, match="`texts` must be one list. Received: 2 columns"):
        model.encode((["a"], ["b"]))
    with pytest.raises(ValueError, match='`format` must be "kbert" or "sentence-transformers"'):
        model.save_pretrained("nowhere", format="huggingface")
    with pytest.raises(ValueError, match=r"`max_sequence_length` must be a whole .* in \[3, 32\]"):
        small_embedder(max_sequence_length=33)

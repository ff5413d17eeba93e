"""The network of each task, in ONNX Runtime, gives what the Keras model gives."""

import numpy as np
import pytest

from kbert.serving.portable.onnx_export import export_onnx
from kbert.serving.portable.onnx_networks import networks
from kbert.tasks.embedding.head import POOLINGS
from tests.serving.portable.run_onnx import exported
from tests.small_captioner import small_captioner
from tests.small_pipelines import (
    small_classifier,
    small_embedder,
    small_entity_recognizer,
    small_masked_language_model,
    small_multi_label_classifier,
    small_multiple_choice,
    small_question_answerer,
    small_regressor,
    small_span_tagger,
)
from tests.small_translator import shared_translator

CLOSE = {"rtol": 0, "atol": 1e-4}


@pytest.mark.parametrize("make", [small_classifier, small_multi_label_classifier])
@pytest.mark.parametrize("head", ["pooler", "two_layer"])
def test_scores_of_labels(make, head, tmp_path):
    found, expected, _ = exported(make(head=head), tmp_path)
    assert list(found) == ["logits"] and found["logits"].shape == (3, 3)
    np.testing.assert_allclose(found["logits"], expected, **CLOSE)


def test_a_number_is_a_column(tmp_path):
    found, expected, _ = exported(small_regressor(), tmp_path)
    np.testing.assert_allclose(found["logits"], np.asarray(expected)[:, None], **CLOSE)


def test_choices(tmp_path):
    found, expected, _ = exported(small_multiple_choice(), tmp_path, choices=True)
    assert found["logits"].shape == (3, 2)
    np.testing.assert_allclose(found["logits"], expected, **CLOSE)


def test_starts_and_ends_of_answers(tmp_path):
    found, expected, mask = exported(small_question_answerer(), tmp_path)
    assert list(found) == ["start_logits", "end_logits"]
    for number, name in enumerate(found):
        np.testing.assert_allclose(found[name], expected[..., number], **CLOSE)
        assert (found[name][mask == 0] == -1e9).all()


@pytest.mark.parametrize("make", [small_span_tagger, small_entity_recognizer])
def test_tags_of_tokens(make, tmp_path):
    found, expected, mask = exported(make(), tmp_path)
    real = mask > 0
    np.testing.assert_allclose(found["logits"][real], np.asarray(expected)[real], **CLOSE)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_vectors_of_sentences(pooling, tmp_path):
    model = small_embedder(pooling=pooling, dense=5 if pooling == "mean" else None)
    found, expected, _ = exported(model, tmp_path)
    assert list(found) == ["token_embeddings", "sentence_embedding"]
    assert found["token_embeddings"].shape == (3, 9, 16)
    np.testing.assert_allclose(found["sentence_embedding"], expected, **CLOSE)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("objective", ["mlm", "lm_nsp"])
def test_tokens_that_were_hidden_and_tokens_that_follow(objective, tied, tmp_path):
    found, expected, mask = exported(small_masked_language_model(objective, tied=tied), tmp_path)
    tokens, *pairs = [np.asarray(one) for one in expected.values()]
    name = "prediction_logits" if pairs else "logits"
    np.testing.assert_allclose(found[name][mask > 0], tokens[mask > 0], **CLOSE)
    for pair in pairs:
        np.testing.assert_allclose(found["seq_relationship_logits"], pair, **CLOSE)


def test_a_translator_has_three_networks_and_a_captioner_none(tmp_path):
    names = ["encoder_model", "decoder_model", "decoder_with_past_model"]
    assert list(networks(shared_translator())) == names
    with pytest.raises(ValueError, match="have an encoder with a head, or translate.* a Captioner"):
        export_onnx(small_captioner(), tmp_path, "network")
    assert not list(tmp_path.iterdir())

"""Encoders as ONNX: each architecture, with and without adapters; others are refused."""

import keras
import numpy as np
import pytest

from kbert.layers.adapters.configs import LoraConfig
from kbert.models.albert import Albert
from kbert.models.bert import Bert
from kbert.models.distilbert import DistilBert
from kbert.models.electra import Electra
from kbert.models.feature_based import FeatureBasedEncoder
from kbert.models.roberta import Roberta
from kbert.serving.portable.onnx_encoders import check_encoder
from kbert.tasks.classification.model import Classifier
from tests.serving.portable.run_onnx import exported
from tests.small_pipelines import TOKENIZER, VOCABULARY, small_classifier, with_fusion

SIZES = (len(VOCABULARY), 16, 2, 2, 32)
CLOSE = {"rtol": 0, "atol": 1e-4}


def classifier(encoder, **kwargs):
    """A classifier on an encoder, all of whose weights are drawn anew: biases are no zeros."""
    model = Classifier(encoder, TOKENIZER, ["no", "yes", "perhaps"], 24, dropout=0.0, **kwargs)
    draw = np.random.default_rng(5)
    for weight in model.trainable_variables:
        weight.assign(weight + draw.normal(0.0, 0.3, weight.shape))
    return model


@pytest.mark.parametrize(
    "make, settings",
    [
        (Bert, {"activation": "gelu_approximate"}),
        (Bert, {"num_segments": 3, "activation": "quick_gelu"}),
        (Albert, {"embedding_dim": 8, "num_groups": 2}),
        (Roberta, {}),
        (Roberta, {"num_segments": 2, "activation": "silu"}),
        (DistilBert, {}),
        (Electra, {"embedding_dim": 8}),
        (Electra, {"activation": "relu"}),
    ],
)
def test_an_encoder_gives_the_same(make, settings, tmp_path):
    model = classifier(make(*SIZES, max_sequence_length=32, **settings))
    found, expected, _ = exported(model, tmp_path)
    np.testing.assert_allclose(found["logits"], expected, **CLOSE)
    assert np.ptp(found["logits"]) > 0.1


def test_a_causal_encoder_sees_what_came_before(tmp_path):
    found, expected, _ = exported(classifier(Bert(*SIZES, causal=True)), tmp_path)
    np.testing.assert_allclose(found["logits"], expected, **CLOSE)


@pytest.mark.parametrize(
    "make, kind", [(Bert, "houlsby"), (Bert, "pfeiffer"), (Bert, "lora"), (Albert, "lora")]
)
def test_an_active_adapter_is_part_of_the_network(make, kind, tmp_path):
    """ALBERT's layers share blocks: LoRA stays beside them, in BERT's it is merged."""
    settings = {"embedding_dim": 8} if make is Albert else {}
    model = classifier(make(*SIZES, **settings))
    given = (
        LoraConfig(rank=2, alpha=3.0, targets=("query", "value", "intermediate", "output"))
        if kind == "lora"
        else kind
    )
    model.encoder.add_adapter("task", given)
    draw = np.random.default_rng(1)
    for weight in model.encoder.adapters.weights:
        weight.assign(draw.normal(0.0, 0.3, weight.shape))
    without, _, _ = exported(model, tmp_path / "without")
    model.encoder.set_active_adapters("task")
    kernel = np.asarray(model.encoder.layer_blocks[0].attention.qkv.kernel)
    found, expected, _ = exported(model, tmp_path / "with")
    np.testing.assert_allclose(found["logits"], expected, **CLOSE)
    assert np.abs(found["logits"] - without["logits"]).max() > 0.01
    np.testing.assert_array_equal(model.encoder.layer_blocks[0].attention.qkv.kernel, kernel)


def test_a_fusion_of_adapters(tmp_path):
    found, expected, _ = exported(with_fusion(small_classifier(), ("a", "b", "c")), tmp_path)
    np.testing.assert_allclose(found["logits"], expected, **CLOSE)


@keras.saving.register_keras_serializable("tests.portable")
class Other(Bert):
    """An encoder that may compute anything."""


def test_other_encoders_are_refused():
    with pytest.raises(ValueError, match="of the architecture bert, .* Received: a Other"):
        check_encoder(Other(*SIZES))
    with pytest.raises(ValueError, match="Received: a FeatureBasedEncoder"):
        check_encoder(FeatureBasedEncoder(Bert(*SIZES), features="last"))
    routed = Bert(*SIZES)
    for name in ("one", "two"):
        routed.add_adapter(name)
    routed.route_adapters(["one", "two"])
    with pytest.raises(ValueError, match="Received: one, two, of which each row has its own"):
        check_encoder(routed)

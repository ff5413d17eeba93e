"""Which layers multiply integers, and how they are rounded."""

from typing import Any

import keras
import numpy as np
import pytest

from kbert.models.albert import Albert
from kbert.models.bert import Bert
from kbert.serving.precision.rounding import (
    Rounding,
    choose_roundings,
    has_integer_products,
    integer_layers,
    integer_matrices,
)
from kbert.tasks.classification.model import Classifier
from tests.small_pipelines import TOKENIZER, VOCABULARY

pytestmark = pytest.mark.skipif(
    not has_integer_products(), reason="this TensorFlow has no product of int8, as it has on x86"
)
IDS = {"token_ids": np.arange(8)[None] % len(VOCABULARY)}


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    keras.utils.set_random_seed(3)
    encoder = Bert(len(VOCABULARY), 64, 1, 2, 128, 32, name="encoder")
    return Classifier(encoder, TOKENIZER, ["no", "yes"], 24)


def test_the_layers_of_encoders(classifier: Classifier):
    names = [layer.path.split("/", 1)[1] for layer in integer_layers(classifier)]
    block = [f"attention/{part}" for part in ("output", "qkv")]
    block += [f"feed_forward/{part}" for part in ("intermediate", "output")]
    assert sorted(names) == sorted([f"encoder_block_0/{name}" for name in block] + ["pooler"])
    assert integer_layers(keras.Sequential()) == integer_layers(object()) == []
    narrow = Bert(len(VOCABULARY), 32, 1, 2, 128, 32)
    assert integer_layers(Classifier(narrow, TOKENIZER, ["no", "yes"], 24)) == []


def roundings(model: Any) -> dict[str, Rounding]:
    """By the ends of the kernels' names."""
    found = integer_matrices(model)
    return {one.path.split("/", 1)[1]: found[id(one.kernel)] for one in integer_layers(model)}


def test_what_is_smoothed_and_what_is_never_lower(classifier: Classifier):
    assert set(map(repr, roundings(classifier).values())) == {repr(Rounding())}
    encoder = classifier.encoder
    # A LayerNorm with a column a thousand times as large as the others, and one of zeros.
    norm = encoder.embeddings.layer_norm
    norm.gamma.assign([1000.0, 0.0] + [1.0] * 62)
    before = [np.asarray(weight) for weight in encoder.weights]
    choose_roundings(classifier)
    for weight, was in zip(encoder.weights, before, strict=True):
        np.testing.assert_array_equal(weight, was)
    found = roundings(classifier)
    qkv = found["encoder_block_0/attention/qkv"]
    assert qkv.lowest is None and qkv.most == 63
    assert qkv.smoothing is not None and qkv.smoothing.shape == (64, 1)
    # Columns of one size are divided by one number or the next; the root of 1000 is some 2^5.
    usual = np.median(qkv.smoothing)
    assert qkv.smoothing[0] / usual in (16, 32, 64) and qkv.smoothing[1] == 1
    assert np.all(np.exp2(np.rint(np.log2(qkv.smoothing))) == qkv.smoothing)
    assert found["encoder_block_0/feed_forward/intermediate"].smoothing is not None
    for name in ("encoder_block_0/attention/output", "pooler"):
        assert found[name] == Rounding()
    after_gelu = found["encoder_block_0/feed_forward/output"]
    assert after_gelu == Rounding(lowest=-0.17) and after_gelu.most == 127
    assert all("call" not in vars(layer) for layer in integer_layers(classifier))


def test_one_encoder_of_two_models_is_smoothed_alike(classifier: Classifier):
    choose_roundings(classifier)
    keras.utils.set_random_seed(4)
    other = Classifier(
        Bert(len(VOCABULARY), 64, 1, 2, 128, 32), TOKENIZER, ["no", "yes"], 24
    )
    choose_roundings(other, like=classifier)
    for name, one in roundings(classifier).items():
        found = roundings(other)[name]
        assert found.lowest == one.lowest
        np.testing.assert_array_equal(found.smoothing, one.smoothing)


def test_other_encoders():
    choose_roundings(keras.Sequential())  # which has none
    encoder = Albert(len(VOCABULARY), 64, 2, 2, 128, 32, 1, 12, activation="tanh")
    model = Classifier(encoder, TOKENIZER, ["no", "yes"], 12)
    choose_roundings(model)
    found = roundings(model)
    # One block, called twice; no more tokens than it has positions; nothing is known after tanh.
    assert sum(one.smoothing is not None for one in found.values()) == 2
    assert {one.lowest for one in found.values()} == {None}

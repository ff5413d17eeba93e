"""The Transformer decoder over an image's map, beside the NumPy reference of a Transformer."""

from typing import Any

import numpy as np
import pytest

from kbert.models.captioning.image_transformer import ImageTransformer
from kbert.models.encoder_decoders.encoder_decoder import EncoderDecoder
from tests import translation_reference as reference
from tests.models.captioning import check_captioner as checks
from tests.models.captioning.check_captioner import FEATURES, INPUTS, TARGET, L, M, V
from tests.models.encoder_decoders.check_sequence_model import check_search, randomized

SETTINGS: list[dict[str, Any]] = [
    {},
    {"num_encoder_layers": 2, "norm": "post", "num_decoder_layers": 2},
    {"num_encoder_layers": 1, "num_decoder_layers": 2},
]


def small(**more: Any) -> ImageTransformer:
    sizes = {"hidden_dim": 8, "num_decoder_layers": 1, "num_heads": 2, "intermediate_dim": 12}
    return randomized(ImageTransformer(V, M, L, **{**sizes, **more}), scale=0.5)


def expected(model: ImageTransformer) -> tuple[np.ndarray, list[np.ndarray]]:
    """Logits (B, T, V), and the attention (B, N, T, L) of each block."""
    arrays = checks.weights_of(model)
    arrays["source_embedding/embeddings"] = arrays["target_embedding/embeddings"]
    kind = reference.Architecture(
        model.num_heads,
        model.num_encoder_layers,
        model.num_decoder_layers,
        model.norm,
        "relu",
        model.layer_norm_epsilon,
    )
    x = FEATURES @ arrays["features/kernel"] + arrays["features/bias"] + arrays["places/embeddings"]
    for number in range(model.num_encoder_layers):
        x = reference.encoder_block(x, arrays, f"encoder_block_{number}", kind)
    if model.norm == "pre":
        gamma, beta = arrays["encoder_norm/gamma"], arrays["encoder_norm/beta"]
        x = reference.reference.layer_norm(x, gamma, beta, kind.epsilon)
    scores = reference.memory_scores(arrays, TARGET, x, kind)
    return reference.decode(arrays, TARGET, x, kind), scores


@pytest.mark.parametrize("settings", SETTINGS)
def test_numbers(settings: dict[str, Any]):
    model = small(**settings)
    assert isinstance(model, EncoderDecoder)
    wanted, attention = expected(model)
    outputs = model(INPUTS)
    assert set(outputs) == {"logits"}
    np.testing.assert_allclose(outputs["logits"], wanted, atol=1e-5)
    found = model.memory_scores(TARGET, model.encode(INPUTS))
    assert len(found) == model.num_decoder_layers
    for one, known in zip(found, attention, strict=True):
        np.testing.assert_allclose(one, known, atol=1e-5)
        np.testing.assert_allclose(np.sum(one, axis=-1), 1.0, atol=1e-5)


def test_steps_of_encoder_and_decoder():
    model = small(**SETTINGS[1])
    checks.check_steps(model)
    checks.check_images_and_order(model)


def test_steps_saving_and_precision():
    model = small()
    checks.check_steps(model)
    checks.check_images_and_order(model)
    checks.check_saved(model)
    checks.check_low_precision(model)


def test_search():
    model = ImageTransformer(4, M, L, 8, 0, 1, 2, 12)
    check_search(randomized(model, scale=0.5), INPUTS)


def test_places_are_known_by_their_vectors():
    """The same vectors at other places are another image."""
    model = small()
    before = model(INPUTS)["logits"].numpy()
    turned = model({**INPUTS, "features": FEATURES[:, ::-1]})["logits"].numpy()
    assert np.abs(before - turned).max() > 1e-2
    model.places.embeddings.assign(np.zeros((L, 8)))
    before = model(INPUTS)["logits"].numpy()
    turned = model({**INPUTS, "features": FEATURES[:, ::-1]})["logits"].numpy()
    np.testing.assert_allclose(before, turned, atol=1e-5)


def test_it_adds_nothing_to_the_loss():
    model = small()
    found = model.attention_loss(TARGET, model(INPUTS), 1.0)
    np.testing.assert_array_equal(found, np.zeros(3, "float32"))


def test_dropout_is_of_training_alone():
    model = small(dropout=0.5)
    once, again = (model(INPUTS, training=True)["logits"].numpy() for _ in range(2))
    assert np.abs(once - again).max() > 1e-3
    np.testing.assert_array_equal(model(INPUTS)["logits"], model(INPUTS)["logits"])


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"norm": "middle"}, "`norm` must be .*Received: norm='middle'"),
        ({"num_heads": 3}, "`num_heads`"),
        # Of the Transformer below it, which no saved file would have.
        ({"activation": "gelu"}, "`activation` must be left out: ImageTransformer has no such"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        small(**arguments)

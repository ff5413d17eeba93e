"""The loss of captions: cross-entropy per piece, and what attention adds to it."""

import keras
import numpy as np
import pytest

from kbert.models.captioning.feature_extractor import FeatureExtractor
from kbert.models.captioning.show_attend_tell import ShowAttendTell
from kbert.tasks.captioning.head import Captioning
from tests import numpy_captioning as reference
from tests.models.captioning.check_captioner import weights_of
from tests.models.captioning.test_show_attend_tell_losses import penalty_above_least
from tests.models.encoder_decoders.check_sequence_model import randomized
from tests.small_captioner import small_network

V, LENGTHS = 9, (4, 2, 3)
PIXELS = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3)).astype("uint8")
READ = np.array([[1, 4, 8, 3], [1, 2, 0, 0], [1, 6, 5, 0]], "int32")
TARGETS = np.array([[4, 8, 3, 2], [2, 7, -1, -1], [6, 5, 2, -1]], "int32")


def small(attention: str = "soft", **options: object) -> Captioning:
    keras.utils.set_random_seed(1)
    decoder = ShowAttendTell(V, 6, hidden_dim=5, attention=attention, dropout=0.0)
    return Captioning(randomized(decoder, scale=0.7), FeatureExtractor(small_network()), **options)


def test_pixels_or_their_features():
    model = small()
    features = model.extractor(PIXELS)
    by_pixels = model({"pixels": PIXELS, "target_token_ids": READ})
    by_features = model({"features": features, "target_token_ids": READ})
    assert set(by_pixels) == {"logits", "weights"}
    for name in by_pixels:
        np.testing.assert_array_equal(by_pixels[name], by_features[name])
    for row in range(3):
        known = reference.caption(
            weights_of(model.decoder), np.asarray(features[row]), READ[row], attention="soft"
        )
        np.testing.assert_allclose(by_pixels["logits"][row], known.logits, atol=1e-4)


@pytest.mark.parametrize("penalty", [0.0, 0.7])
def test_the_loss_by_the_reference(penalty: float):
    """Both terms are divided by the pieces of the batch; evaluation has only the first."""
    model = small(attention_penalty=penalty)
    model.compile("sgd")
    features = model.extractor(PIXELS)
    inputs = {"features": features, "target_token_ids": READ}
    entropy = more = 0.0
    for row, length in enumerate(LENGTHS):
        known = reference.caption(
            weights_of(model.decoder),
            np.asarray(features[row]),
            READ[row, :length],
            attention="soft",
        )
        entropy += reference.caption_cross_entropy(known.logits, TARGETS[row, :length])
        more += penalty_above_least(known.attention)
    found = model.compute_loss(inputs, TARGETS, model(inputs, training=True), training=True)
    assert float(found) == pytest.approx((entropy + penalty * more) / sum(LENGTHS), rel=1e-4)
    found = model.compute_loss(inputs, TARGETS, model(inputs), training=False)
    assert float(found) == pytest.approx(entropy / sum(LENGTHS), rel=1e-4)


def test_label_smoothing():
    model = small(label_smoothing=0.1)
    model.compile("sgd", run_eagerly=True)
    inputs = {"pixels": PIXELS, "target_token_ids": READ}
    logs = keras.ops.log_softmax(model(inputs)["logits"]).numpy()
    rows, places = np.nonzero(TARGETS >= 0)
    own = logs[rows, places, TARGETS[rows, places]].sum()
    wanted = -(0.9 * own + 0.1 * logs[rows, places].mean(axis=-1).sum()) / sum(LENGTHS)
    found = model.evaluate(inputs, TARGETS, verbose=0, return_dict=True)
    assert found["loss"] == pytest.approx(wanted, rel=1e-4)
    assert found["perplexity"] == pytest.approx(np.exp(-own / sum(LENGTHS)), rel=1e-4)
    right = logs.argmax(-1)[rows, places] == TARGETS[rows, places]
    assert found["accuracy"] == pytest.approx(right.mean())


@pytest.mark.parametrize("learns", [True, False])
def test_the_network_learns_or_is_frozen(learns: bool):
    model = small(train_extractor=learns)
    names = {variable.path for variable in model.extractor.weights}
    trainable = {variable.path for variable in model.trainable_variables}
    assert (names <= trainable) == learns and (not names & trainable) == (not learns)
    assert {v.path for v in model.decoder.trainable_variables} <= trainable
    model.trainable = False
    assert not any(variable.trainable for variable in model.variables)
    model.trainable = True
    assert {variable.path for variable in model.trainable_variables} == trainable


def test_dropout_of_channels_is_the_same_at_all_places():
    model = small(feature_dropout=0.5)
    seen = []
    model.decoder.call = lambda inputs, training=None: seen.append(inputs["features"]) or {}
    features = np.random.default_rng(0).normal(size=(50, 4, 6)).astype("float32")
    inputs = {"features": features, "target_token_ids": READ[:1].repeat(50, axis=0)}
    model.call(inputs, training=True)
    model.call(inputs)
    dropped, whole = (np.asarray(one) for one in seen)
    np.testing.assert_array_equal(whole, features)
    factor = dropped / features
    np.testing.assert_allclose(factor, np.repeat(factor[:, :1], 4, axis=1), rtol=1e-5)
    np.testing.assert_allclose(np.unique(np.round(factor, 4)), [0.0, 2.0])
    assert 0.4 < (factor == 0).mean() < 0.6


def test_configuration():
    given = {"label_smoothing": 0.2, "attention_penalty": 0.3, "feature_dropout": 0.4}
    model = small(**given, train_extractor=True)
    again = Captioning.from_config(model.get_config())
    assert {name: getattr(again, name) for name in given} == given and again.train_extractor
    again.set_weights(model.get_weights())
    inputs = {"pixels": PIXELS, "target_token_ids": READ}
    np.testing.assert_array_equal(again(inputs)["logits"], model(inputs)["logits"])


def test_parts_of_other_widths():
    with pytest.raises(ValueError, match="as wide as the extractor's. Received: 7 and 6"):
        Captioning(ShowAttendTell(V, 7, 4), FeatureExtractor(small_network()))

"""The networks that see images: how pixels are scaled, and where the network is cut."""

from typing import Any

import keras
import numpy as np
import pytest

from kbert.models.captioning.feature_extractor import FeatureExtractor, cut
from kbert.models.weights import encoder_arrays

PIXELS = np.random.default_rng(4).uniform(0, 255, (2, 8, 12, 3)).astype("float32")
MODULES = {
    "tf": keras.applications.mobilenet_v2,
    "torch": keras.applications.densenet,
    "caffe": keras.applications.resnet,
}


def network(normalized: bool = False) -> keras.Model:
    """Two convolutions, the second of which gives a map of 3 x 5 with 5 channels."""
    entered = keras.Input((8, 12, 3))
    x = keras.layers.Conv2D(4, 3, 2, activation="relu", padding="same", name="first")(entered)
    if normalized:
        x = keras.layers.BatchNormalization(name="norm")(x)
    x = keras.layers.Conv2D(5, 2, 1, name="second")(x)
    pooled = keras.layers.GlobalAveragePooling2D(name="pooled")(x)
    return keras.Model(entered, pooled, name="tiny")


def test_places_stand_row_by_row():
    inner = cut(network(), "second")
    extractor = FeatureExtractor(inner)
    found = extractor(PIXELS)
    assert (extractor.image_size, extractor.map_shape) == ((8, 12), (3, 5))
    assert extractor.feature_dim == 5
    assert found.shape == (2, 15, 5) and found.dtype == "float32"
    known = inner(PIXELS)
    for row in range(3):
        for column in range(5):
            place = found[:, row * 5 + column]
            np.testing.assert_allclose(place, known[:, row, column], atol=1e-5)
    np.testing.assert_array_equal(extractor(PIXELS.astype("uint8")), extractor(PIXELS // 1))


@pytest.mark.parametrize("scaling", MODULES)
def test_pixels_are_scaled_as_keras_scales_them(scaling: str):
    inner = cut(network(), "second")
    wanted = inner(MODULES[scaling].preprocess_input(PIXELS.copy()))
    found = FeatureExtractor(inner, scaling)(PIXELS)
    np.testing.assert_allclose(found, np.reshape(wanted, found.shape), rtol=1e-5, atol=1e-4)
    plain = FeatureExtractor(inner)(PIXELS).numpy()
    assert np.abs(found.numpy() - plain).max() > 1.0


@pytest.mark.parametrize(
    "name, scaling",
    [
        ("MobileNetV2", "tf"),
        ("ResNet50", "caffe"),
        ("ResNet50V2", "tf"),
        ("InceptionResNetV2", "tf"),
        ("VGG16", "caffe"),
        ("DenseNet121", "torch"),
        ("EfficientNetB0", "none"),
        ("MobileNetV3Small", "none"),
        ("ConvNeXtTiny", "none"),
    ],
)
def test_each_network_has_its_own_scaling(
    name: str, scaling: str, monkeypatch: pytest.MonkeyPatch
):
    """By the function `preprocess_input` beside each network, which some leave as it is."""
    asked: dict[str, Any] = {}

    def make(**arguments: Any) -> keras.Model:
        asked.update(arguments)
        return network()

    module = getattr(keras.applications, name).__module__.rsplit(".", 1)[1]
    known = getattr(keras.applications, module).preprocess_input(PIXELS.copy())
    monkeypatch.setattr(keras.applications, name, make)
    made = FeatureExtractor.from_application(name, "second", "some.h5", 8, 12)
    assert made.preprocessing == scaling
    assert asked == {"include_top": False, "weights": "some.h5", "input_shape": (8, 12, 3)}
    inner = made.network(np.asarray(known))
    np.testing.assert_allclose(made(PIXELS), np.reshape(inner, (2, 15, 5)), rtol=1e-5, atol=1e-4)


def test_a_network_of_keras_without_weights():
    made = FeatureExtractor.from_application("MobileNet", "conv_pw_1_relu", None, 32, 48)
    assert (made.image_size, made.map_shape, made.feature_dim) == ((32, 48), (16, 24), 64)
    assert made.preprocessing == "tf"
    assert np.isfinite(made(np.zeros((1, 32, 48, 3)))).all()


def test_training_leaves_the_statistics_of_batch_normalization():
    extractor = FeatureExtractor(cut(network(normalized=True), "second"))
    plain = keras.Sequential([extractor, keras.layers.GlobalAveragePooling1D()])
    plain.compile("sgd", "mse")
    before = encoder_arrays(extractor)
    in_training, outside = extractor(PIXELS, training=True), extractor(PIXELS, training=False)
    np.testing.assert_array_equal(in_training, outside)
    plain.fit(PIXELS, np.ones((2, 5)), epochs=2, verbose=0)
    after = encoder_arrays(extractor)
    changed = {name for name in before if not np.array_equal(before[name], after[name])}
    assert not [name for name in changed if "moving" in name]
    assert [name for name in before if "moving" in name]
    assert {"first/kernel", "second/kernel"} <= {"/".join(n.split("/")[-2:]) for n in changed}


def test_configuration():
    extractor = FeatureExtractor(cut(network(normalized=True), "second"), "torch")
    again = FeatureExtractor.from_config(extractor.get_config())
    assert again.get_config() == extractor.get_config()
    again.set_weights(extractor.get_weights())
    np.testing.assert_array_equal(again(PIXELS), extractor(PIXELS))


def test_a_layer_that_is_not_there():
    with pytest.raises(ValueError) as raised:
        cut(network(), "third")
    assert str(raised.value) == (
        "`layer` must be a layer of tiny with a map: input_layer, first, second. "
        "Received: layer='third'"
    ).replace("input_layer", network_input(str(raised.value)))


def network_input(text: str) -> str:
    """The name of the input, in which Keras counts."""
    return text.split("with a map: ")[1].split(",")[0]


def test_what_is_no_map():
    message = r"must map pixels \(B, H, W, 3\) .*: \(None, 8, 12, 3\) -> \(None, 5\); `cut` takes"
    with pytest.raises(ValueError, match=message):
        FeatureExtractor(network())
    free = keras.Input((None, None, 3))
    free = keras.Model(free, keras.layers.Conv2D(2, 3)(free))
    with pytest.raises(ValueError, match=r"of a fixed size .*\(None, None, None, 3\) ->"):
        FeatureExtractor(free)
    gray = keras.Input((8, 8, 1))
    gray = keras.Model(gray, keras.layers.Conv2D(2, 3)(gray))
    with pytest.raises(ValueError, match=r"Received: \(None, 8, 8, 1\) ->"):
        FeatureExtractor(gray)
    with pytest.raises(ValueError, match=r"`preprocessing` must be one of \['none', .*='keras'"):
        FeatureExtractor(cut(network(), "second"), "keras")
    for name in ("Resnet50", "preprocess_input", "mobilenet"):
        message = f"`name` must be a network of keras.applications: .*MobileNet.*name='{name}'"
        with pytest.raises(ValueError, match=message):
            FeatureExtractor.from_application(name, "second", None)

"""A convolutional network, cut at a layer: images -> the vectors of a map, one for each place.

Shapes: B batch, H and W height and width of an image, L places of the map, M channels.
"""

from typing import Any

import keras
from keras import ops

# How pixels in 0..255 are scaled, as `keras.applications` calls it; "none" leaves them, as networks
# that scale by themselves need.
PREPROCESSING = ("none", "tf", "torch", "caffe")
# Beginning of a network's name in `keras.applications` -> its scaling, the longest name first.
_OF_APPLICATIONS = {
    "ConvNeXt": "none",
    "DenseNet": "torch",
    "EfficientNet": "none",
    "Inception": "tf",
    "MobileNetV3": "none",
    "MobileNet": "tf",
    "NASNet": "tf",
    "ResNet": "caffe",
    "VGG": "caffe",
    "Xception": "tf",
}


@keras.saving.register_keras_serializable("kbert")
class FeatureExtractor(keras.Model):
    """The map of a convolutional network, as a sequence of vectors.

    Statistics of batch normalization stay as they are, in training too: batches of captions are
    small, and the same image occurs in them several times.

    Args:
        network: a Keras model of pixels (B, H, W, 3), with H and W fixed, to a map (B, h, w, M);
            see `from_application` and `cut`.
        preprocessing: of pixels in 0..255 before the network: "none", "tf" (to -1..1), "torch" (by
            ImageNet's mean and deviation) or "caffe" (blue first, less ImageNet's mean).

    Raises:
        ValueError: the network has other shapes, or `preprocessing` is unknown.
    """

    def __init__(self, network: keras.Model, preprocessing: str = "none", **kwargs: Any) -> None:
        super().__init__(**{"name": "feature_extractor", **kwargs})
        if preprocessing not in PREPROCESSING:
            raise ValueError(
                f"`preprocessing` must be one of {list(PREPROCESSING)}. "
                f"Received: preprocessing={preprocessing!r}"
            )
        entered, left = tuple(network.input_shape), tuple(network.output_shape)
        known = None not in (*entered[1:], *left[1:])
        if len(entered) != 4 or entered[3] != 3 or len(left) != 4 or not known:
            raise ValueError(
                "`network` must map pixels (B, H, W, 3) of a fixed size to a map (B, h, w, M). "
                f"Received: {entered} -> {left}; `cut` takes the output of a layer"
            )
        self.network, self.preprocessing = network, preprocessing
        self.built = True

    @classmethod
    def from_application(
        cls,
        name: str,
        layer: str,
        weights: str | None = "imagenet",
        height: int = 224,
        width: int = 224,
    ) -> "FeatureExtractor":
        """Makes the extractor of a network of `keras.applications`.

        Args:
            name: of the function there, such as "MobileNetV2" or "EfficientNetB0".
            layer: the name of the layer whose output is the map.
            weights: "imagenet", which is downloaded; a file with weights; or None for random ones.
            height: H, in pixels.
            width: W, in pixels.

        Raises:
            ValueError: there is no such network or layer, or its output is no map.
        """
        make = getattr(keras.applications, name, None)
        scaling = next((v for k, v in _OF_APPLICATIONS.items() if name.startswith(k)), None)
        if not callable(make) or scaling is None:
            known = [k for k in dir(keras.applications) if k[:1].isupper()]
            raise ValueError(
                f"`name` must be a network of keras.applications: {', '.join(known)}. "
                f"Received: name={name!r}"
            )
        if name.startswith("ResNet") and name.endswith("V2"):
            scaling = "tf"
        whole = make(include_top=False, weights=weights, input_shape=(height, width, 3))
        return cls(cut(whole, layer), scaling)

    @property
    def image_size(self) -> tuple[int, int]:
        """H and W."""
        height, width = self.network.input_shape[1:3]
        return int(height), int(width)

    @property
    def map_shape(self) -> tuple[int, int]:
        """Height and width of the map; L is their product."""
        height, width = self.network.output_shape[1:3]
        return int(height), int(width)

    @property
    def feature_dim(self) -> int:
        """M."""
        return int(self.network.output_shape[-1])

    def call(self, pixels: Any, training: bool | None = None) -> Any:
        """Maps pixels (B, H, W, 3), red, green and blue in 0..255, to vectors float32 (B, L, M).

        The places stand row by row.

        Args:
            pixels: (B, H, W, 3).
            training: not read, see above.
        """
        pixels = ops.cast(pixels, "float32")
        if self.preprocessing != "none":
            preprocess = keras.applications.imagenet_utils.preprocess_input
            pixels = preprocess(pixels, data_format="channels_last", mode=self.preprocessing)
        found = ops.cast(self.network(pixels, training=False), "float32")
        height, width = self.map_shape
        return ops.reshape(found, (-1, height * width, self.feature_dim))

    def get_config(self) -> dict[str, Any]:
        network = keras.saving.serialize_keras_object(self.network)
        config = {"network": network, "preprocessing": self.preprocessing}
        return {**super().get_config(), **config}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "FeatureExtractor":
        """Makes the extractor of a configuration from `get_config`, with random weights."""
        network = keras.saving.deserialize_keras_object(config["network"])
        return cls(**{**config, "network": network})


def cut(network: keras.Model, layer: str) -> keras.Model:
    """Returns the model up to the output of a layer.

    Args:
        network: a functional model with one input.
        layer: the name of the layer.

    Raises:
        ValueError: there is no such layer.
    """
    names = [one.name for one in network.layers]
    if layer not in names:
        shapes = [getattr(one.output, "shape", ()) for one in network.layers]
        maps = [name for name, shape in zip(names, shapes) if len(shape) == 4]
        raise ValueError(
            f"`layer` must be a layer of {network.name} with a map: {', '.join(maps)}. "
            f"Received: layer={layer!r}"
        )
    inside = network.get_layer(layer).output
    return keras.Model(network.inputs[0], inside, name=f"{network.name}_to_{layer}")

"""EfficientNet-Lite0 in Keras, an image classifier, with the weights of its PyTorch port.

Lite drops squeeze-and-excitation, and has ReLU6 for swish. Sources: Tan and Le, "EfficientNet"
(2019), table 1, for the blocks; tensorflow/tpu, models/official/efficientnet/lite, for the rest.
The weights were trained in TensorFlow, with its padding: with PyTorch's usual one fewer dogs are
found in photographs of dogs (tests/benchmarks/test_efficientnet_lite.py).
"""

from pathlib import Path
from typing import Any

import keras
import numpy as np
from safetensors.numpy import load_file

SIZE = 224
CLASSES = 1000
# Maps of 14 x 14: of images of 224 with 112 and 672 channels, and of 448 the last one, 1280.
MAP_112, MAP_672, MAP_1280 = "block_10_add", "block_11_expand_relu", "head_relu"
# Of each stage: blocks, kernel size, stride of its first block, channels, expansion.
STAGES = (
    (1, 3, 1, 16, 1),
    (2, 3, 2, 24, 6),
    (2, 5, 2, 40, 6),
    (3, 3, 2, 80, 6),
    (3, 5, 1, 112, 6),
    (4, 5, 2, 192, 6),
    (1, 3, 1, 320, 6),
)


class _Builder:
    """Layers one behind another, each with the name of its weights in the file."""

    def __init__(self, padding: str) -> None:
        self.padding = padding
        self.sources: dict[str, str] = {}

    def convolved(
        self, x: Any, name: str, sources: tuple[str, str], layer: Any, relu: bool = True
    ) -> Any:
        """Convolution, normalization, and ReLU6."""
        stride, kernel = layer.strides[0], layer.kernel_size[0]
        if stride > 1 and self.padding == "symmetric":
            x = keras.layers.ZeroPadding2D(kernel // 2, name=f"{name}_padding")(x)
            layer.padding = "valid"
        x = layer(x)
        norm = keras.layers.BatchNormalization(epsilon=1e-3, name=f"{name}_norm")
        self.sources |= {layer.name: sources[0], norm.name: sources[1]}
        x = norm(x)
        return keras.layers.ReLU(6.0, name=f"{name}_relu")(x) if relu else x

    def pointwise(
        self, x: Any, name: str, sources: tuple[str, str], channels: int, **how: bool
    ) -> Any:
        """A convolution of 1 x 1."""
        layer = keras.layers.Conv2D(channels, 1, use_bias=False, name=name)
        return self.convolved(x, name, sources, layer, **how)

    def block(self, x: Any, i: int, kernel: int, stride: int, channels: int, factor: int) -> Any:
        """An inverted bottleneck, with a residual where its shape allows."""
        given, source, name = x, f"_blocks.{i}.", f"block_{i}"
        if factor > 1:
            sources = (f"{source}_expand_conv", f"{source}_bn0")
            x = self.pointwise(x, f"{name}_expand", sources, factor * x.shape[-1])
        layer = keras.layers.DepthwiseConv2D(
            kernel, stride, "same", use_bias=False, name=f"{name}_depthwise"
        )
        x = self.convolved(x, layer.name, (f"{source}_depthwise_conv", f"{source}_bn1"), layer)
        sources = (f"{source}_project_conv", f"{source}_bn2")
        x = self.pointwise(x, f"{name}_project", sources, channels, relu=False)
        same = stride == 1 and given.shape[-1] == channels
        return keras.layers.Add(name=f"{name}_add")([x, given]) if same else x


def untrained_lite0(
    padding: str = "same", size: int = SIZE
) -> tuple[keras.Model, dict[str, str]]:
    """The architecture, and {name of a layer: of its weights in the file}."""
    build = _Builder(padding)
    inputs = keras.Input((size, size, 3), name="pixels")
    x = keras.layers.Rescaling(1 / 128, -127 / 128, name="rescaling")(inputs)
    stem = keras.layers.Conv2D(32, 3, 2, "same", use_bias=False, name="stem")
    x = build.convolved(x, "stem", ("_conv_stem", "_bn0"), stem)
    number = 0
    for blocks, kernel, stride, channels, factor in STAGES:
        for i in range(blocks):
            x = build.block(x, number, kernel, stride if i == 0 else 1, channels, factor)
            number += 1
    x = build.pointwise(x, "head", ("_conv_head", "_bn1"), 1280)
    x = keras.layers.GlobalAveragePooling2D(name="pooling")(x)
    outputs = keras.layers.Dense(CLASSES, name="logits")(x)
    model = keras.Model(inputs, outputs, name="efficientnet_lite0")
    return model, build.sources | {"logits": "_fc"}


def efficientnet_lite0(path: str | Path, padding: str = "same", size: int = SIZE) -> keras.Model:
    """Pixels (B, 224, 224, 3) in 0..255 -> logits (B, 1000) of ImageNet's classes.

    Args:
        path: `efficientnet-lite0.safetensors`.
        padding: of convolutions with a stride: "same" as in TensorFlow, more behind than before,
            or "symmetric" as is usual in PyTorch.
        size: height and width of the images.
    """
    arrays = load_file(path)
    model, sources = untrained_lite0(padding, size)
    for name, source in sources.items():
        layer = model.get_layer(name)
        if isinstance(layer, keras.layers.BatchNormalization):
            kinds = ("weight", "bias", "running_mean", "running_var")
            layer.set_weights([arrays[f"{source}.{kind}"] for kind in kinds])
        elif isinstance(layer, keras.layers.Dense):
            layer.set_weights([arrays[f"{source}.weight"].T, arrays[f"{source}.bias"]])
        else:  # (out, in, h, w), or (channels, 1, h, w) where each channel has its own kernel
            depthwise = isinstance(layer, keras.layers.DepthwiseConv2D)
            order = (2, 3, 0, 1) if depthwise else (2, 3, 1, 0)
            layer.set_weights([np.transpose(arrays[f"{source}.weight"], order)])
    return model

"""EfficientNet-Lite0 has the published size, and finds dogs in photographs of dogs."""

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from safetensors.numpy import load_file

from kbert.data.captions.captioned_images import CaptionExamples, read_captions
from kbert.images.decoding import decoded
from kbert.images.reading import read_images

DOGS = range(151, 269)  # classes of ImageNet, from Chihuahua to Mexican hairless
DOG = re.compile(r"\bdogs?\b", re.IGNORECASE)


@pytest.fixture
def module(program: Callable[[str], ModuleType]) -> ModuleType:
    """The part of benchmarks/ with the classifier."""
    return program("side_by_side.efficientnet_lite")


@pytest.fixture
def weights(shared_data: Path) -> Path:
    path = shared_data / "vision" / "efficientnet-lite0.safetensors"
    if not path.is_file():
        pytest.skip(f"no {path}")
    return path


@pytest.fixture
def photographs(shared_data: Path) -> CaptionExamples:
    folder = shared_data / "captions"
    if not folder.is_dir():
        pytest.skip(f"no captions/ in {shared_data}")
    return read_captions(folder / "captions.txt.gz", folder / "images")


def test_the_architecture(module: ModuleType):
    model, sources = module.untrained_lite0()
    # The published number: 4.652 million (efficientnet-lite0, d-li14/efficientnet-lite.pytorch).
    assert sum(np.prod(weight.shape) for weight in model.trainable_weights) == 4_652_008
    assert model.get_layer(module.MAP_112).output.shape == (None, 14, 14, 112)
    assert model.get_layer(module.MAP_672).output.shape == (None, 14, 14, 672)
    assert len(sources) == len({*sources.values()}) == 99  # 49 convolutions with norms, and logits
    symmetric, _ = module.untrained_lite0("symmetric")
    shapes = [layer.output.shape for layer in model.layers]
    named = {layer.name: layer.output.shape for layer in symmetric.layers}
    assert [named[layer.name] for layer in model.layers] == shapes


@pytest.mark.slow
def test_dogs_are_found(module: ModuleType, weights: Path, photographs: CaptionExamples):
    """Of 206 photographs, a dog first and among five, with either padding and fit:

    same, crop 169, 193; symmetric, crop 159, 188; same, squeeze 163, 186; symmetric, squeeze 159,
    189. The classifier was trained with crops; there the mean probability of a dog is 0.715 with
    "same" and 0.686 with "symmetric", 0.029 apart with a standard error of 0.008.
    """
    captions = photographs.captions or []
    rows = [row for row, each in enumerate(captions) if all(map(DOG.search, each))]
    others = [row for row, each in enumerate(captions) if not any(map(DOG.search, each))][:100]
    assert len(rows) == 206
    images = read_images(photographs.select(rows + others).paths)
    pixels, problems = decoded(images, 224, 224, "crop")
    assert set(problems.numpy()) == {b""}
    logits = module.efficientnet_lite0(weights).predict(pixels, batch_size=32, verbose=0)
    is_dog = np.isin(np.argsort(-logits, axis=1)[:, :5], DOGS)
    assert is_dog[:206, 0].sum() >= 165 and is_dog[:206].any(axis=1).sum() >= 190
    assert is_dog[206:, 0].sum() <= 5


def test_every_weight_has_its_place(module: ModuleType, weights: Path):
    arrays = load_file(weights)
    model = module.efficientnet_lite0(weights)
    depthwise = arrays["_blocks.3._depthwise_conv.weight"]  # (144, 1, 5, 5)
    kernel = model.get_layer("block_3_depthwise").kernel[..., 0]
    assert np.array_equal(kernel, depthwise[:, 0].transpose(1, 2, 0))
    project = arrays["_blocks.3._project_conv.weight"][..., 0, 0]
    assert np.array_equal(model.get_layer("block_3_project").kernel[0, 0], project.T)
    numbers = sum(a.size for name, a in arrays.items() if not name.endswith("num_batches_tracked"))
    assert model.count_params() == numbers

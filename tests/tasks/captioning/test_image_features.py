"""Features of a frozen network: computed once, kept on disk, and whole or not there at all."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.models.captioning.feature_extractor import FeatureExtractor
from kbert.tasks.captioning import image_features as module
from kbert.tasks.captioning.image_features import as_files, image_features, image_pixels, joined
from kbert.tasks.captioning.model import Captioner
from kbert.tasks.load import load
from tests.small_captioner import files_of, shapes, shared_captioner, small_captioner

IMAGES, _ = shapes()


@pytest.fixture(scope="module")
def files() -> list[bytes]:
    return files_of(IMAGES)


@pytest.fixture
def computations(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of images of each computation of features."""
    seen: list[int] = []
    computed = module._computed

    def counted(model: Any, images: Any) -> Any:
        seen.append(len(images))
        return computed(model, images)

    monkeypatch.setattr(module, "_computed", counted)
    return seen


def test_pixels_of_any_layout(tmp_path: Path):
    model, view = shared_captioner(), IMAGES[:3, ..., ::-1]  # of other colors, not copied
    found = image_features(model, view, tmp_path / "features")
    np.testing.assert_array_equal(found, image_features(model, view.copy(), tmp_path / "more"))


def test_numbers_that_are_too_large_are_told(monkeypatch: pytest.MonkeyPatch):
    model = small_captioner()
    large = np.full((2, 16, 6), 1e6, "float32")
    monkeypatch.setattr(FeatureExtractor, "__call__", lambda self, x, **_: tf.constant(large))
    with pytest.raises(ValueError, match="`network` must have features that half precision holds"):
        image_features(model, IMAGES[:2], None)


def test_they_are_those_of_the_network(files: list[bytes], tmp_path: Path):
    model = shared_captioner()
    wanted = model.extractor(IMAGES).numpy()
    for found in (
        image_features(model, files),
        image_features(model, files, tmp_path / "new" / "folder"),
        image_features(model, IMAGES),
    ):
        assert found.shape == (12, 16, 6) and found.dtype == "float16"
        np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=1e-3)
    assert np.abs(wanted).max() > 0.1
    (kept,) = (tmp_path / "new" / "folder").iterdir()
    assert kept.suffix == ".npy" and np.load(kept).shape == (12, 16, 6)


def test_they_are_computed_once(files: list[bytes], tmp_path: Path, computations: list[int]):
    model = shared_captioner()
    first = image_features(model, files, tmp_path)
    again = image_features(model, files, tmp_path)
    assert computations == [12] and len(list(tmp_path.iterdir())) == 1
    np.testing.assert_array_equal(first, again)
    # The names do not count, the bytes do.
    paths = []
    for number, file in enumerate(files):
        paths.append(tmp_path / f"{number}.png")
        paths[-1].write_bytes(file)
    image_features(model, paths, tmp_path)
    assert computations == [12]
    image_features(model, files)
    assert computations == [12, 12]


def test_another_image_order_fit_or_weight_is_another_file(
    files: list[bytes], tmp_path: Path, computations: list[int]
):
    def names() -> set[str]:
        return {path.name for path in tmp_path.iterdir()}

    model = small_captioner()
    known = image_features(model, files[:4], tmp_path)
    image_features(model, files[:3], tmp_path)
    turned = image_features(model, [files[1], files[0], *files[2:4]], tmp_path)
    assert len(names()) == 3
    np.testing.assert_array_equal(turned[0], known[1])
    model.image_fit = "crop"
    image_features(model, files[:4], tmp_path)
    model.image_fit = "squeeze"
    assert len(names()) == 4
    kernel = model.extractor.network.get_layer("second").kernel
    kernel.assign(kernel * 1.5)
    moved = image_features(model, files[:4], tmp_path)
    assert len(names()) == len(computations) == 5
    assert np.abs(np.asarray(moved, "float32") - known).max() > 0.1
    model.extractor.preprocessing = "tf"
    image_features(model, files[:4], tmp_path)
    assert len(names()) == 6
    # The decoder is no part of it.
    model.decoder.output_layer.bias.assign(np.ones(len(model.subwords)))
    image_features(model, files[:4], tmp_path)
    assert len(names()) == 6


def test_a_model_that_was_saved_finds_them(
    files: list[bytes], tmp_path: Path, computations: list[int]
):
    model = small_captioner()
    image_features(model, files, tmp_path / "features")
    again = load(model.save_pretrained(tmp_path / "model"))
    image_features(again, files, tmp_path / "features")
    assert computations == [12]


def test_broken_images_are_named_and_nothing_is_left(files: list[bytes], tmp_path: Path):
    model = shared_captioner()
    paths: list[Any] = []
    for number in range(12):
        paths.append(tmp_path / f"{number}.png")
        paths[-1].write_bytes(files[number] if number not in (2, 7) else b"no image")
    folder = tmp_path / "features"
    message = f"Received 2 of 12 that are none:\nimage 2 ({paths[2]}): "
    with pytest.raises(ValueError) as raised:
        image_features(model, paths, folder)
    assert str(raised.value).startswith(f"`images` must be images. {message}")
    assert f"\nimage 7 ({paths[7]}): " in str(raised.value)
    assert list(folder.iterdir()) == []
    many = [*files[:3], *[b"no"] * 7]
    for function in (image_features, image_pixels):
        with pytest.raises(ValueError, match="(?s)7 of 10 .*image 3: .*image 7: .*and 2 more$"):
            function(model, many)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, OSError])
def test_a_stop_leaves_nothing(
    error: type[BaseException], files: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def stopped(model: Any, images: Any) -> Any:
        yield slice(0, 1), np.ones((1, 16, 6), "float16")
        raise error("power")

    with monkeypatch.context() as patched:
        patched.setattr(module, "_computed", stopped)
        with pytest.raises(error, match="power"):
            image_features(shared_captioner(), files, tmp_path)
    assert list(tmp_path.iterdir()) == []
    found = image_features(shared_captioner(), files, tmp_path)
    assert np.abs(found[0] - 1.0).max() > 0.1


def test_pixels_are_those_of_the_files(files: list[bytes]):
    model = shared_captioner()
    found = image_pixels(model, files)
    assert found.dtype == "uint8"
    np.testing.assert_array_equal(found, IMAGES)


def test_more_images_than_are_decoded_at_a_time(
    files: list[bytes], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """With a bar, which is not drawn on stdout."""
    model = shared_captioner()
    whole = image_features(model, files)
    monkeypatch.setattr(module, "_AT_A_TIME", 5)
    monkeypatch.setattr(module, "_SECONDS_BETWEEN_LINES", 0.0)
    parts = image_features(model, files)
    shown = capsys.readouterr()
    assert "12/12" in shown.err and shown.out == ""
    np.testing.assert_allclose(parts, whole, rtol=2e-3, atol=1e-4)
    np.testing.assert_array_equal(image_pixels(model, files), IMAGES)


def test_arrays_of_batches_are_joined():
    one, other = np.ones((2, 3, 2)), np.full((1, 2, 2), 5.0)
    found = joined([one, other])
    assert found.shape == (3, 3, 2)
    np.testing.assert_array_equal(found[2], [[5, 5], [5, 5], [0, 0]])
    texts = joined([np.array([[b"a"]], object), np.array([[b"b", b"c"]], object)])
    assert texts.tolist() == [[b"a", b""], [b"b", b"c"]]
    assert joined([np.array([1, 2]), np.array([3])]).tolist() == [1, 2, 3]


def test_pixels_as_files():
    found = as_files(IMAGES[:2])
    model: Captioner = shared_captioner()
    np.testing.assert_array_equal(image_pixels(model, found.numpy().tolist()), IMAGES[:2])
    assert as_files(np.array([], object)).shape == (0,)


def test_the_same_network_made_a_second_time_finds_them(
    files: list[bytes], tmp_path: Path, computations: list[int]
):
    def made() -> Captioner:
        model = small_captioner()
        entered = keras.Input((32, 32, 3))  # which Keras numbers, as other layers without a name
        network = keras.Model(entered, keras.layers.Conv2D(6, 8, 8)(entered))
        for variable in network.weights:
            variable.assign(np.full(variable.shape, 0.5))
        return Captioner(model.decoder, FeatureExtractor(network), model.subwords, max_length=8)

    for _ in range(2):
        image_features(made(), files, tmp_path)
    assert computations == [12] and len(list(tmp_path.iterdir())) == 1

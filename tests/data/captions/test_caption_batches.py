"""Batches of captions, each with its image."""

import numpy as np
import pytest

from kbert.data.batches.packed_examples import TokenRows
from kbert.data.captions.caption_batches import PackedCaptions, caption_dataset

LENGTHS = np.array([3, 1, 4, 2, 5, 2, 4], "int32")
STARTS = np.cumsum(LENGTHS, dtype="int64") - LENGTHS
IDS = np.arange(10, 10 + LENGTHS.sum(), dtype="int32")
ROWS = np.array([0, 0, 1, 2, 2, 2, 3])
FEATURES = np.arange(4 * 2 * 3, dtype="float16").reshape(4, 2, 3)
PIXELS = np.arange(4 * 2 * 2 * 3, dtype="uint8").reshape(4, 2, 2, 3)


def packed(pixels: bool = False) -> PackedCaptions:
    captions = TokenRows(IDS, STARTS, LENGTHS, np.zeros(7, bool), start_id=2, padding_id=0)
    return PackedCaptions(PIXELS if pixels else FEATURES, ROWS, captions)


def read(dataset: object) -> dict[tuple[int, ...], np.ndarray]:
    """The tokens of each caption -> its image; the form of each batch is checked."""
    found = {}
    for inputs, targets in dataset:
        ids = inputs["target_token_ids"].numpy()
        images = inputs["pixels" if "pixels" in inputs else "features"]
        assert ids.dtype == "int32" and targets.dtype == "int32"
        for row, target in enumerate(targets.numpy()):
            tokens = target[target >= 0]
            assert (target[len(tokens) :] == -1).all()
            np.testing.assert_array_equal(ids[row, : len(tokens)], [2, *tokens[:-1]])
            found[tuple(tokens.tolist())] = images[row].numpy()
    return found


@pytest.mark.parametrize("pixels", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_each_caption_comes_once_with_its_image(shuffle: bool, pixels: bool):
    one = packed(pixels)
    assert len(one) == 7 and one.are_pixels == pixels
    found = read(caption_dataset(one, batch_size=3, shuffle=shuffle, seed=4))
    assert len(found) == 7
    for start, length, row in zip(STARTS, LENGTHS, ROWS):
        image = found[tuple(IDS[start : start + length].tolist())]
        assert image.dtype == ("uint8" if pixels else "float32")
        np.testing.assert_array_equal(image, one.images[row])


def test_batches_have_captions_of_similar_length():
    lengths = [
        (targets.numpy() >= 0).sum(axis=1).tolist()
        for _, targets in caption_dataset(packed(), batch_size=3)
    ]
    assert lengths == [[5, 4, 4], [3, 2, 2], [1]]


def batches_of(dataset: object) -> list[list[list[int]]]:
    return [targets.numpy().tolist() for _, targets in dataset]


def test_every_epoch_has_its_own_order_and_a_rest_goes_on():
    options = {"batch_size": 2, "shuffle": True, "seed": 1}
    dataset = caption_dataset(packed(), **options)
    epochs = [batches_of(dataset) for _ in range(3)]
    assert epochs[0] != epochs[1] and len({str(epoch) for epoch in epochs}) == 3
    again = caption_dataset(packed(), **options)
    assert batches_of(again) == epochs[0]
    assert batches_of(caption_dataset(packed(), **options, first_epoch=2)) == epochs[2]
    rest = caption_dataset(packed(), **options, first_epoch=1, first_batch=2)
    assert batches_of(rest) == epochs[1][2:]
    assert batches_of(caption_dataset(packed(), **{**options, "seed": 2})) != epochs[0]


def test_fixed_shapes():
    dataset = caption_dataset(packed(), batch_size=3, fixed_length=6)
    inputs, targets = dataset.element_spec
    assert inputs["features"].shape == (3, 2, 3)
    assert inputs["target_token_ids"].shape == targets.shape == (3, 6)
    assert len(read(dataset)) == 6  # of two whole batches


def test_captions_longer_than_a_fixed_length():
    with pytest.raises(ValueError, match="`fixed_length` must be at least the longest example"):
        caption_dataset(packed(), batch_size=3, fixed_length=2)


def test_features_that_are_on_disk(tmp_path: object):
    np.save(tmp_path / "f.npy", FEATURES)
    on_disk = PackedCaptions(np.load(tmp_path / "f.npy", mmap_mode="r"), ROWS, packed().captions)
    found, known = (read(caption_dataset(x, batch_size=4)) for x in (on_disk, packed()))
    assert found.keys() == known.keys()
    for key in known:
        np.testing.assert_array_equal(found[key], known[key])
